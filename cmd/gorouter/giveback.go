package main

import "time"

// giveBackTime is how long a program that ends of a panic waits for a device
// whose lock may be held by whoever panicked.
const giveBackTime = 3 * time.Second

// giveBack undoes what opening the ports changed on interfaces of the kernel,
// whatever state the box is in. It is the last act before the program ends of a
// panic; else close does it.
func (b *box) giveBack() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, p := range b.ports {
			if p == nil {
				continue
			}
			if d, ok := p.Device.(interface{ GiveBack() error }); ok {
				if err := d.GiveBack(); err != nil {
					b.log.Error("not given back", "error", err)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(giveBackTime):
	}
}

// onPanic returns what is to be deferred where a panic would otherwise end the
// program at once. It lets the panic pass, with the stack where it began.
func (b *box) onPanic() func() {
	return func() {
		if p := recover(); p != nil {
			b.giveBack()
			panic(p)
		}
	}
}
