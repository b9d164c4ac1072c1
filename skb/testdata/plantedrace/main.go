// Command plantedrace writes one packet buffer from two goroutines. Built
// with -race it shows whether the detector watches the arena: started with
// "race" the writers are not ordered and it must report them; started with
// "handover" the buffer passes through a channel and it must be silent.
package main

import (
	"fmt"
	"os"
	"sync"

	"gorouter/skb"
)

func main() {
	a, err := skb.NewArena(skb.Options{Buffers: 256})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	c := a.NewCache("planted")
	h := c.Alloc()
	a.Put(h, 60)
	switch what := os.Args[1]; what {
	case "race":
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { write(a, h) })
		}
		wg.Wait()
	case "handover":
		pass, back := make(chan skb.Handle), make(chan skb.Handle)
		go func() {
			h := <-pass
			write(a, h)
			back <- h
		}()
		write(a, h)
		pass <- h
		write(a, <-back)
	default:
		fmt.Fprintln(os.Stderr, "unknown:", what)
		os.Exit(3)
	}
	c.Free(h)
	if _, err := a.Audit(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println("done")
}

func write(a *skb.Arena, h skb.Handle) {
	for i := range a.Bytes(h) {
		a.Bytes(h)[i]++
	}
}
