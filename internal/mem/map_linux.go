package mem

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapRegion(size int, o Options) (*Region, error) {
	prot := unix.PROT_READ | unix.PROT_WRITE
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	r := &Region{size: size}
	if o.Huge {
		hs := (size + HugePageSize - 1) &^ (HugePageSize - 1)
		// MAP_POPULATE makes a shortage of huge pages an error here and not
		// a bus error at first touch.
		m, err := unix.Mmap(-1, 0, hs, prot, flags|unix.MAP_HUGETLB|unix.MAP_POPULATE)
		if err == nil {
			r.mapped, r.huge, r.size = m, true, hs
		}
	}
	if r.mapped == nil {
		populate := unix.MAP_POPULATE
		if o.Lazy {
			populate = unix.MAP_NORESERVE
		}
		m, err := unix.Mmap(-1, 0, size, prot, flags|populate)
		if err != nil {
			return nil, fmt.Errorf("map %d bytes of memory: %w", size, err)
		}
		r.mapped = m
	}
	if o.Lock {
		if err := unix.Mlock(r.mapped); err != nil {
			n := len(r.mapped)
			_ = unix.Munmap(r.mapped)
			if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) {
				return nil, fmt.Errorf("lock %d bytes of memory: %w (raise the limit: ulimit -l, or run as root)", n, err)
			}
			return nil, fmt.Errorf("lock %d bytes of memory: %w", n, err)
		}
	}
	r.base = unsafe.Pointer(unsafe.SliceData(r.mapped))
	return r, nil
}

func unmap(m []byte) error {
	if err := unix.Munmap(m); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(m), err)
	}
	return nil
}
