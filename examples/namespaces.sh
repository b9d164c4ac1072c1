#!/bin/bash
# Two hosts and a router in network namespaces, with gorouter between them.
# Run as root from the top of the project: examples/namespaces.sh
# It pings, traces the route, prints the router's report and cleans up.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	echo "namespaces.sh: network namespaces need root (try sudo)" >&2
	exit 1
fi
id=grx$$
router=
cleanup() {
	[ -n "$router" ] && kill "$router" 2>/dev/null && wait "$router" 2>/dev/null
	for n in h1 r h2; do ip netns del "$id-$n" 2>/dev/null; done
	rm -rf "$tmp"
	return 0
}
tmp=$(mktemp -d)
trap cleanup EXIT
trap 'exit 1' INT TERM

go build -o "$tmp/gorouter" ./cmd/gorouter
for n in h1 r h2; do
	ip netns add "$id-$n"
	ip -n "$id-$n" link set lo up
done
ip -n "$id-h1" link add eth0 type veth peer name lan0 netns "$id-r"
ip -n "$id-h2" link add eth0 type veth peer name wan0 netns "$id-r"
ip -n "$id-h1" addr add 10.0.1.2/24 dev eth0
ip -n "$id-h2" addr add 10.0.2.2/24 dev eth0
for h in h1 h2; do ip -n "$id-$h" link set eth0 up; done
ip -n "$id-h1" route add default via 10.0.1.1
ip -n "$id-h2" route add default via 10.0.2.1

ip netns exec "$id-r" "$tmp/gorouter" -c examples/namespaces.yaml --interval 1h 2>"$tmp/log" >"$tmp/report" &
router=$!
for _ in $(seq 100); do
	grep -q msg=ready "$tmp/log" && break
	kill -0 "$router" 2>/dev/null || break
	sleep 0.1
done
if ! grep -q msg=ready "$tmp/log"; then
	cat "$tmp/log" >&2
	exit 1
fi

echo "== h1 pings h2 through the router"
ip netns exec "$id-h1" ping -c 3 -i 0.2 10.0.2.2
if command -v traceroute >/dev/null; then
	echo "== h1 traces the route to h2"
	ip netns exec "$id-h1" traceroute -n -q 1 10.0.2.2
fi
kill "$router"
wait "$router" || true
router=
echo "== the router's report"
cat "$tmp/report"
