package packet

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcDrop is the verdict that ends a frame at traffic control (TCX_DROP,
// TC_ACT_SHOT).
const tcDrop = 2

// instruction is one BPF instruction.
type instruction struct {
	code uint8
	_    uint8 // registers: r0 everywhere
	_    int16 // jump offset
	imm  int32
}

// programLoad begins union bpf_attr of BPF_PROG_LOAD.
type programLoad struct {
	kind     uint32
	count    uint32
	insns    uint64
	license  uint64
	logLevel uint32
	logSize  uint32
	log      uint64
	version  uint32
	flags    uint32
	name     [16]byte
}

// linkCreate is union bpf_attr of BPF_LINK_CREATE for tcx.
type linkCreate struct {
	program  uint32
	index    uint32
	kind     uint32
	flags    uint32
	relative uint32
	_        uint32
	revision uint64
}

// loadDropProgram loads "drop everything" and returns its descriptor.
func loadDropProgram() (int, error) {
	code := &[2]instruction{
		{code: unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K, imm: tcDrop}, // r0 = tcDrop
		{code: unix.BPF_JMP | unix.BPF_EXIT},
	}
	license := &[...]byte{'G', 'P', 'L', 0}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(code)
	pin.Pin(license)
	a := programLoad{
		kind: unix.BPF_PROG_TYPE_SCHED_CLS, count: uint32(len(code)),
		insns: uint64(uintptr(unsafe.Pointer(code))), license: uint64(uintptr(unsafe.Pointer(license))),
	}
	copy(a.name[:], filterName)
	return bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&a), unsafe.Sizeof(a))
}

// attachTCX puts the program in front of all others at the interface's ingress
// and returns the link's descriptor. EINVAL says that the kernel has no tcx.
func attachTCX(program, index int) (int, error) {
	a := linkCreate{program: uint32(program), index: uint32(index), kind: unix.BPF_TCX_INGRESS, flags: unix.BPF_F_BEFORE}
	return bpf(unix.BPF_LINK_CREATE, unsafe.Pointer(&a), unsafe.Sizeof(a))
}

// bpf makes the system call. The descriptors it returns are close-on-exec.
func bpf(command int, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
