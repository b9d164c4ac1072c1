#include "textflag.h"

// DMB $2 is DMB OSHST: stores before it reach the outer shareable domain,
// where devices are, before stores after it.

// func Store32(p unsafe.Pointer, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVW v+8(FP), R1
	DMB  $2
	MOVW R1, (R0)
	RET

// DMB $1 is DMB OSHLD: loads after it, such as of descriptors the register
// speaks of, are not done before the register was read.

// func Load32(p unsafe.Pointer) uint32
TEXT ·Load32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU (R0), R1
	DMB  $1
	MOVW R1, ret+8(FP)
	RET
