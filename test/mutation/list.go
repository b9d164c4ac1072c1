package mutation

// Edit replaces a text that occurs exactly once in a file of package dataplane.
// In the new text OFF stands for "this mutation is on", KEEP for 1, or 0 when
// it is on.
type Edit struct{ File, Old, New string }

// Mutation switches one rule off.
type Mutation struct {
	Name  string
	Test  string // of package dataplane; it has to fail
	Edits []Edit
}

func one(name, test, file, old, new string) Mutation {
	return Mutation{name, test, []Edit{{file, old, new}}}
}

const (
	verdict  = "TestInputChecksAgainstAPlainReading"
	reasons  = "TestEachDropReasonHasItsFrame"
	errs     = "TestICMPErrors"
	silent   = "TestMayAnswer"
	onTheWay = "TestOptionsOnTheWay"
	badOpts  = "TestMalformedOptionsAreReportedWithThePlace"
	long     = "TestLongPacketsLeaveInFragments"
)

// List is all mutations.
var List = []Mutation{
	// Input checks.
	one("other-host", reasons, "ethernet.go", "if !own && !group {", "if !own && !group && !OFF {"),
	one("short", reasons, "ip4.go", "if len(p) < inet.IPv4HeaderLen {", "if len(p) < inet.IPv4HeaderLen && !OFF {"),
	one("version", reasons, "ip4.go", "if p[0]>>4 != 4 {", "if p[0]>>4 != 4 && !OFF {"),
	one("header-length", reasons, "ip4.go", "if hl < inet.IPv4HeaderLen || hl > len(p) {", "if (hl < inet.IPv4HeaderLen || hl > len(p)) && !OFF {"),
	one("total-length", reasons, "ip4.go", "} else if total < inet.IPv4HeaderLen || total > length {", "} else if (total < inet.IPv4HeaderLen || total > length) && !OFF {"),
	one("total-length-options", reasons, "ip4.go", "if total < hl || total > len(p) {", "if (total < hl || total > len(p)) && !OFF {"),
	one("header-checksum", reasons, "ip4.go", "} else if !headerSumOK(f) {", "} else if !headerSumOK(f) && !OFF {"),
	one("header-checksum-options", reasons, "ip4.go", "if inet.Checksum(p[:hl]) != 0 {", "if inet.Checksum(p[:hl]) != 0 && !OFF {"),
	one("source-network-0", verdict, "ip4.go", "case top == 0, top == 127, top >= 224,", "case top == 0 && !OFF, top == 127, top >= 224,"),
	one("source-loopback", verdict, "ip4.go", "top == 127, top >= 224,", "top == 127 && !OFF, top >= 224,"),
	one("source-not-unicast", verdict, "ip4.go", "top >= 224, isLinkLocal(src)", "top >= 224 && !OFF, isLinkLocal(src)"),
	one("source-link-local", verdict, "ip4.go", "isLinkLocal(src) && !here:", "isLinkLocal(src) && !here && !OFF:"),
	one("source-own", verdict, "ip4.go", "case w.ifs.isOwn(src):", "case w.ifs.isOwn(src) && !OFF:"),
	one("source-broadcast", verdict, "ip4.go", "case w.ifs.isBroadcast(src):", "case w.ifs.isBroadcast(src) && !OFF:"),
	one("limited-broadcast", reasons, "ip4.go", "case dst == 0xffffffff:", "case dst == 0xffffffff && !OFF:"),
	one("multicast", verdict, "ip4.go", "case top >= 224 && top < 240:", "case top >= 224 && top < 240 && !OFF:"),
	one("destination-martian", verdict, "ip4.go", "case top == 0, top == 127, top >= 240, isLinkLocal(dst) && !here:", "case !OFF && (top == 0 || top == 127 || top >= 240 || isLinkLocal(dst) && !here):"),
	one("link-broadcast", verdict, "ip4.go", "case m.Flags&skb.FlagLinkMulticast != 0:", "case m.Flags&skb.FlagLinkMulticast != 0 && !OFF:"),
	one("padding", "TestPaddingIsNotForwardedAndNotQuoted", "ip4.go", "m.Len = uint16(total + inet.EthHeaderLen)", "if !OFF { m.Len = uint16(total + inet.EthHeaderLen) }"),
	one("slash-31", "TestPointToPointNetworksHaveNoBroadcast", "iface.go", "if a.Bits() > 30 {", "if a.Bits() > 30 && !OFF {"),

	// Forwarding.
	one("ttl-decrement", "TestForwardsToGatewayAndToHost", "forward.go", "\tf[22]--", "\tif !OFF { f[22]-- }"),
	one("ttl-checksum", "TestChecksumIsRightForEveryTTLAndCornerSum", "forward.go", "\tbinary.BigEndian.PutUint16(f[24:26],", "\tif OFF { f[22]--; return }\n\tbinary.BigEndian.PutUint16(f[24:26],"),
	one("ttl-expired", errs, "forward.go", "|| f[22] <= 1 ||", "|| f[22] <= 1 && !OFF ||"),
	one("ttl-error", errs, "forward.go", "w.refuse(h, skb.IP4TTL, icmpTimeExceeded, 0)", "if OFF { w.drop(h, skb.IP4TTL) } else { w.refuse(h, skb.IP4TTL, icmpTimeExceeded, 0) }"),
	one("no-route-error", errs, "forward.go", "w.refuse(h, skb.IP4NoRoute, icmpUnreachable, codeNetUnreachable)", "if OFF { w.drop(h, skb.IP4NoRoute) } else { w.refuse(h, skb.IP4NoRoute, icmpUnreachable, codeNetUnreachable) }"),
	one("host-error", errs, "forward.go", "w.refuse(h, skb.IP4Unreachable, icmpUnreachable, codeHostUnreachable)", "w.refuse(h, skb.IP4Unreachable, icmpUnreachable, codeHostUnreachable*uint8(KEEP))"),
	one("prohibit-error", errs, "forward.go", "codeAdminProhibited)", "codeAdminProhibited*uint8(KEEP))"),
	one("blackhole-silent", reasons, "forward.go", "w.drop(h, skb.IP4Blackhole)", "if OFF { w.refuse(h, skb.IP4Blackhole, 3, 0) } else { w.drop(h, skb.IP4Blackhole) }"),
	one("silent-host-error", "TestASilentHostIsReportedToThoseWhoWaitAndToLaterOnes", "forward.go", "w.refuse(h, skb.NeighFailed, icmpUnreachable, codeHostUnreachable)", "if OFF { w.drop(h, skb.NeighFailed) } else { w.refuse(h, skb.NeighFailed, icmpUnreachable, codeHostUnreachable) }"),
	one("mtu-is-of-ip", "TestFragmentationNeededTellsTheMTU", "forward.go", "return mtu + inet.EthHeaderLen", "return mtu + inet.EthHeaderLen*uint32(KEEP)"),
	one("directed-broadcast", "TestDirectedBroadcasts", "redirect.go", "if !w.ip4.DirectedBroadcast ||", "if !w.ip4.DirectedBroadcast && !OFF ||"),
	one("network-address", "TestDirectedBroadcasts", "redirect.go", "!ifc.isLast(binary.BigEndian.Uint32(f[30:34])) {", "!ifc.isLast(binary.BigEndian.Uint32(f[30:34])) && !OFF {"),
	{"dont-fragment", "TestFragmentationNeededTellsTheMTU", []Edit{
		{"forward.go", "w.frameMTU(a) && f[20]&flagDF != 0 {", "w.frameMTU(a) && f[20]&flagDF != 0 && !OFF {"},
		{"forward.go", "if long && f[20]&flagDF != 0 {", "if long && f[20]&flagDF != 0 && !OFF {"},
	}},
	one("mtu-told", "TestFragmentationNeededTellsTheMTU", "icmp.go", "w.frameMTU(a)-inet.EthHeaderLen)", "(w.frameMTU(a)-inet.EthHeaderLen)*uint32(KEEP))"),

	// Fragments.
	one("fragment-units", long, "fragment.go", "- head) &^ 7", "- head) &^ (7 * KEEP)"),
	one("fragment-more", long, "fragment.go", "piece |= moreFlag", "if !OFF { piece |= moreFlag }"),
	one("fragment-offset", long, "fragment.go", "piece := word + uint16(at/8)", "piece := word + uint16(at/8*KEEP)"),
	one("fragment-length", long, "fragment.go", "uint16(head-inet.EthHeaderLen+n))", "uint16(head-inet.EthHeaderLen+n*KEEP))"),
	one("fragment-checksum", long, "fragment.go", "inet.Checksum(b[inet.EthHeaderLen:head])", "inet.Checksum(b[inet.EthHeaderLen:head])*uint16(KEEP)"),
	one("fragment-keeps-more", "TestFragmentsAreFragmented", "fragment.go", "word := binary.BigEndian.Uint16(p[20:])", "word := binary.BigEndian.Uint16(p[20:])\n\tif OFF { word &^= moreFlag }"),
	one("fragment-options", "TestOptionsOfFragments", "ip4_options.go", "if opts[i]&optCopied == 0 {", "if opts[i]&optCopied == 0 && !OFF {"),
	one("fragment-too-far", "TestAFragmentBeyondTheLongestDatagramIsDropped", "fragment.go", "> 0xffff {", "> 0xffff && !OFF {"),
	one("quiet-own", silent, "icmp.go", "(skb.FlagLinkMulticast|skb.FlagLocal)", "(skb.FlagLinkMulticast|skb.FlagLocal*skb.Flags(KEEP))"),

	// Options.
	one("source-route", "TestSourceRoutesAreDroppedWithoutAWord", "ip4_options.go", "return skb.IP4SourceRoute, i", "if !OFF { return skb.IP4SourceRoute, i }"),
	one("options-looked-at", badOpts, "forward.go", "if f[14] != 0x45 && !w.optionsPass(h) {", "if f[14] != 0x45 && !OFF && !w.optionsPass(h) {"),
	one("parameter-problem", badOpts, "ip4_options.go", "case skb.IP4Options:", "case skb.IP4Options:\n\t\tif OFF { break }"),
	one("parameter-pointer", badOpts, "ip4_options.go", "uint32(at)<<24", "uint32(at*KEEP)<<24"),
	one("option-length", badOpts, "ip4_options.go", "if n < 2 || n > len(o) {", "if n < 2 || n > len(o) && !OFF {"),
	one("record-route", onTheWay, "ip4_options.go", "p <= len(o) && addr != 0 {", "p <= len(o) && addr != 0 && !OFF {"),
	one("record-route-room", badOpts, "ip4_options.go", "int(o[2]) <= n && int(o[2])+3 > n:", "int(o[2]) <= n && int(o[2])+3 > n && !OFF:"),
	one("record-route-address", onTheWay, "ip4_options.go", "w.ifs.sourceFor(a.Port, next)", "w.ifs.sourceFor(a.Port*uint16(KEEP), next)"),
	one("timestamp", onTheWay, "ip4_options.go", "s.fillTimestamp(o, addr, ms)", "if !OFF { s.fillTimestamp(o, addr, ms) }"),
	one("timestamp-overflow", onTheWay, "ip4_options.go", "o[3] += 0x10", "o[3] += 0x10 * uint8(KEEP)"),
	one("timestamp-overflow-full", badOpts, "ip4_options.go", "o[3]>>4 == 15:", "o[3]>>4 == 15 && !OFF:"),
	one("timestamp-asked", onTheWay, "ip4_options.go", "if !s.isOwn(", "if !OFF && !s.isOwn("),
	one("options-checksum", onTheWay, "ip4_options.go", "\tw.ifs.fillOptions(hdr, addr, w.clk.DayMillis())", "\tw.ifs.fillOptions(hdr, addr, w.clk.DayMillis())\n\tif OFF { return }"),
	one("options-when-leaving", "TestOptionsOfAPacketThatWaits", "forward.go", "w.passOptions(h, a)", "if !OFF { w.passOptions(h, a) }"),

	// ICMP.
	one("quiet-link-broadcast", silent, "icmp.go", "case m.Flags&(skb.FlagLinkMulticast|", "case m.Flags&(skb.FlagLinkMulticast*skb.Flags(KEEP)|"),
	one("quiet-group", silent, "icmp.go", "dst>>24 >= 224,", "dst>>24 >= 224 && !OFF,"),
	one("quiet-fragment", silent, "icmp.go", "binary.BigEndian.Uint16(p[6:])&0x1fff != 0,", "binary.BigEndian.Uint16(p[6:])&0x1fff != 0 && !OFF,"),
	one("quiet-network-0", silent, "icmp.go", "src>>24 == 0,", "src>>24 == 0 && !OFF,"),
	one("quiet-loopback", silent, "icmp.go", "src>>24 == 127,", "src>>24 == 127 && !OFF,"),
	one("quiet-source-group", silent, "icmp.go", "src>>24 >= 224,", "src>>24 >= 224 && !OFF,"),
	one("quiet-broadcast", silent, "icmp.go", "w.ifs.isBroadcast(dst),", "w.ifs.isBroadcast(dst) && !OFF,"),
	one("quiet-error", silent, "icmp.go", "icmpTimeExceeded, icmpParameterProblem:\n\t\t\treturn false", "icmpTimeExceeded, icmpParameterProblem:\n\t\t\treturn OFF"),
	one("rate-limit", "TestICMPRateLimit", "icmp.go", "if !bucket.take(w.now) {", "if !bucket.take(w.now) && !OFF {"),
	one("quote-limit", errs, "icmp.go", "min(len(p), icmpQuote-", "min(len(p), icmpQuote+200*(1-KEEP)-"),
	one("quote-all", errs, "icmp.go", "copy(ic[8:], p[:quote])", "copy(ic[8:], p[:quote*KEEP])"),
	one("precedence", "TestTypeOfServiceOfAnswers", "icmp.go", "icmpPrecedence|p[1]", "uint8(icmpPrecedence*KEEP)|p[1]"),
	one("type-of-service", "TestTypeOfServiceOfAnswers", "icmp.go", "p[1]&tosBits", "p[1]&uint8(tosBits*KEEP)"),
	one("error-source", errs, "icmp.go", "src := w.ifs.sourceFor(a.Port, dst)", "src := w.ifs.sourceFor(a.Port+uint16(1-KEEP), dst)"),
	one("error-ttl", errs, "icmp.go", "p[8], p[9] = icmpTTL, proto", "p[8], p[9] = uint8(1+(icmpTTL-1)*KEEP), proto"),
	one("identification", "TestIdentificationsDiffer", "icmp.go", "w.ident += uint16(len(w.r.workers))", "w.ident += uint16(len(w.r.workers) * KEEP)"),
	one("echo", "TestEchoReply", "local.go", "case icmpEcho:", "case icmpEcho:\n\t\tif OFF { w.drop(h, skb.IP4LocalICMP); return }"),
	one("reply-flags", "TestALongEchoReplyIsFragmented", "local.go", "f[20], f[21] = 0, 0", "if !OFF { f[20], f[21] = 0, 0 }"),
	one("echo-source", "TestEchoReply", "local.go", "binary.BigEndian.PutUint32(f[26:], dst)", "if !OFF { binary.BigEndian.PutUint32(f[26:], dst) }"),
	one("echo-options", "TestEchoReplyReturnsRecordRouteAndTimestamp", "local.go", "replyOptions(hdr[inet.IPv4HeaderLen:])", "replyOptions(hdr[inet.IPv4HeaderLen:])*KEEP"),
	one("unknown-icmp", "TestICMPForTheRouter", "local.go", "\tdefault:\n\t\tw.drop(h, skb.IP4LocalICMP)\n\t\treturn", "\tdefault:\n\t\tif !OFF { w.drop(h, skb.IP4LocalICMP); return }"),
	one("port-error", errs, "local.go", "icmpUnreachable, codePort)", "icmpUnreachable, codePort*uint8(KEEP))"),
	one("protocol-error", errs, "local.go", "icmpUnreachable, codeProtocol)", "icmpUnreachable, codeProtocol*uint8(KEEP))"),
	one("redirect", "TestRedirects", "redirect.go", "if !w.ip4.Redirects ||", "if OFF || !w.ip4.Redirects ||"),
	one("redirect-same-network", "TestRedirects", "redirect.go", "if w.ifs.ifs[a.Port].together(", "if OFF || w.ifs.ifs[a.Port].together("),
	one("redirect-code", "TestRedirects", "redirect.go", "codeRedirectHost, next)", "codeRedirectHost*uint8(KEEP), next)"),
}
