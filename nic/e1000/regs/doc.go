// Package regs describes the register file of the Intel 8254x gigabit
// Ethernet controllers as data.
//
// One table row per register carries the name, offset, array shape, access
// mode, reset value, manual section and bit fields. From the rows come the
// decoded dump ([Decode], [Dump]), the decoded difference of two values or two
// dumps ([Diff], [DiffDump]) and the reverse of decoding ([Parse]). Beside the
// table stand plain constants for code that reads and writes registers: the
// offsets under their datasheet names ([CTRL], [RDBAL], ...) and the bits as
// register name plus field name ([CtrlRST], [RctlEN], ...). A test holds
// constants and table together.
//
// Descriptor formats are not here: they belong to the receive and transmit
// packages.
//
// Sections cited as "13.4.1" are those of Intel's "PCI/PCI-X Family of Gigabit
// Ethernet Controllers Software Developer's Manual", document 317453. The
// 82542 and 82543, which use other offsets, are not covered.
//
// Nothing in this package touches a device. Its tables are fixed at start-up
// and every function is safe for concurrent use.
package regs
