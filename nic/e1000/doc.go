// Package e1000 drives an Intel 8254x gigabit controller through its
// registers: reset, EEPROM, address, link, receive and transmit units,
// statistics. The rings themselves are rx.E1000 and tx.E1000; this package
// makes them, points the chip at them, and never touches a frame.
//
// It runs on anything that is mmio.Registers: a mapped PCI BAR or a software
// chip. One file has one phase of the bring-up, in the order of chapter 14 of
// the manual:
//
//	reset.go     mask interrupts, stop both units, reset, wait (14.3)
//	eeprom.go    read and check the EEPROM (5.6), eecd.go for the 82544
//	mac.go       choose the Ethernet address
//	filter.go    receive addresses, multicast and VLAN tables (13.5)
//	link.go      link without waiting for it, then the watch (8, 14.3)
//	receive.go   receive unit (14.4)
//	transmit.go  transmit unit (14.5)
//	stats.go     counters, which clear on reading or not (13.7)
//	interrupt.go masks and causes, for workers that sleep (3.2.7, 13.4.17)
//	multicast.go group addresses and promiscuous modes (13.5.1)
//	watchdog.go  hangs and stalls; hang.go describes, recover.go cures them
//
// What differs between chips is one record a chip, in quirks.go.
//
// Sections are those of Intel's "PCI/PCI-X Family of Gigabit Ethernet
// Controllers Software Developer's Manual", document 317453.
//
// Threads: both queues belong to one worker, and so do Housekeep, which may
// reset the rings, and Arm, Disarm and Cause. Start, Stop, Close, CheckLink,
// SetMTU, Dump, Reset and the filter's setters exclude each other and
// Housekeep by a lock and may come from any goroutine, with two exceptions.
// Start and Reset rewrite the rings, so no worker may be using them meanwhile.
// And a software chip that runs inline has no lock against its own steps:
// there all calls must come from the goroutine that steps it. Stats, Link and
// LastHang may be called at any time.
package e1000
