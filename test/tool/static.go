package main

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io"
	"os"
)

// static checks that the program needs no dynamic loader and no shared library.
func static(path string, w io.Writer) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s asks for a dynamic loader; build it with CGO_ENABLED=0", path)
		}
	}
	libraries, err := f.ImportedLibraries()
	if err == nil && len(libraries) > 0 {
		return fmt.Errorf("%s needs the shared libraries %v; build it with CGO_ENABLED=0", path, libraries)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "static %s for %v, %s, %d KiB\n", info.Path, f.Machine, info.GoVersion, st.Size()>>10)
	return nil
}
