// Package model is a software 8254x gigabit controller: a chip that is driven
// through its registers and descriptor rings like the real one, and a cable
// that joins it to another chip or to anything else that is an [Endpoint].
//
// The chip can be any of [Chips] on any of [Buses], with its quirks. In
// [ModeStrict] it watches the ring protocol from the device's side and reports
// every breach by the name of the rule that was broken; a real chip would send
// garbage, write into a freed buffer or stall, some time later. Rules are data
// (see [Rule]); a driver policy that has to break one declares a waiver. In
// [ModeQEMU] it behaves as QEMU's device does where that differs.
//
// A chip fails when told to (see [Fault]), and a cable loses, delays, reorders,
// repeats and damages frames when told to (see [Impairment]); both follow a
// seed. Whatever happens, [Cable.Wires] accounts for every frame.
//
// Two goroutines may meet at a chip: the driver's, which reads and writes
// registers and descriptors, and the one that steps the chip or its cable.
// Inline, both are the same goroutine, and a run is deterministic. With
// Config.Threaded the chip may be stepped by a [Thread], and everything the
// two share is ordered as descriptors and registers of hardware are: a tail
// write publishes the descriptors before it, a write-back publishes the data
// before it. A tail write takes no lock in either case; other register
// accesses take the chip's, which a step holds for one batch of frames.
//
// Sections cited are those of Intel's "PCI/PCI-X Family of Gigabit Ethernet
// Controllers Software Developer's Manual", document 317453.
package model
