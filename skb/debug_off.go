//go:build !skbdebug

package skb

// Debug reports whether the package was built with the tag skbdebug.
const Debug = false

const debugEnabled = false

type debugState struct{}

func (*debugState) init(int) {}

func (*Arena) debugUse(Handle)           {}
func (*Arena) debugAlloc(Handle, string) {}
func (*Arena) debugFree(Handle, string)  {}
func (*Arena) debugFreed(Handle, string) {}
func (*Arena) debugFail(Handle, string)  {}

func (*Arena) debugOwner(Handle) string { return "unknown (build with -tags skbdebug)" }

// SetOwner notes in a debug build who holds the buffer now.
func (*Arena) SetOwner(Handle, string) {}
