#include "textflag.h"

// func Store32(p unsafe.Pointer, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

// func Load32(p unsafe.Pointer) uint32
TEXT ·Load32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL (AX), CX
	MOVL CX, ret+8(FP)
	RET
