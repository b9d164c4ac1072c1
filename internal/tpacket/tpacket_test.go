package tpacket

import "testing"

// What the kernel demands of a ring (packet_set_ring): blocks of whole pages,
// aligned slots, and as many slots as the blocks hold.
func TestLayoutIsWhatTheKernelTakes(t *testing.T) {
	for slots := 80; slots <= 4096; slots += 8 {
		for _, need := range []int{1, 127, 512, 1618, 2048, 2049, 9118, 65536 + RxOverhead} {
			l := NewLayout(slots, need)
			r := l.Request()
			switch {
			case l.SlotSize < need || l.SlotSize >= need+8192:
				t.Errorf("%d slots of %d bytes: slot size %d", slots, need, l.SlotSize)
			case r.Block_size%4096 != 0 || r.Frame_size%16 != 0:
				t.Errorf("%d slots of %d bytes: misaligned %+v", slots, need, r)
			case r.Block_size/r.Frame_size*r.Block_nr != r.Frame_nr || r.Frame_nr != uint32(slots):
				t.Errorf("%d slots of %d bytes: %+v", slots, need, r)
			case l.Size() != int(r.Block_size*r.Block_nr):
				t.Errorf("%d slots of %d bytes: mapping of %d", slots, need, l.Size())
			}
		}
	}
}
