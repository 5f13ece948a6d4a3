# shellcheck shell=bash disable=SC2154
# What is different but healthy. One function a kind, `shape_KIND INDEX ARG ...`; the comment above is its help.

# only eth0: no fast link, no docker0
shape_one_nic() {
  in_net "$1" ip link del eth1
  in_net "$1" ip link del docker0
  in_host "$1" sh -c 'grep -v -- -fast /etc/hosts > /etc/hosts.new; mv /etc/hosts.new /etc/hosts'
}
# IPv6 only: fd00:10::/64 on eth0, fd00:20::/64 on eth1, names to match (apply to all)
shape_ipv6_only() {
  local i=$1 j
  in_net "$i" ip -batch - <<B
link del docker0
addr flush dev eth0 scope global
addr flush dev eth1 scope global
addr add fd00:10::$((10 + i))/64 dev eth0 nodad
addr add fd00:20::$((10 + i))/64 dev eth1 nodad
B
  { printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n'
    for j in $(each all); do echo "fd00:10::$((10 + j)) node$j"; echo "fd00:20::$((10 + j)) node$j-fast"; done
  } | in_host "$i" sh -c 'cat > /etc/hosts'
}
# IPv6 beside IPv4, names with both
shape_dual_stack() {
  local j
  in_net "$1" ip addr add "fd00:10::$((10 + $1))/64" dev eth0 nodad
  for j in $(each all); do echo "fd00:10::$((10 + j)) node$j"; done | in_host "$1" sh -c 'cat >> /etc/hosts'
}
# every name has two IPv4 addresses, eth0's and eth1's
shape_two_addresses() {
  local j
  for j in $(each all); do echo "$NET1.$((10 + j)) node$j"; done | in_host "$1" sh -c 'cat >> /etc/hosts'
}
# /32 addresses with an on-link route, as some clouds give
shape_host32() {
  in_net "$1" ip -batch - <<B
addr flush dev eth0
addr add $NET0.$((10 + $1))/32 dev eth0
route add $NET0.0/24 dev eth0 scope link
route replace default via $NET0.1 dev eth0 onlink
link set eth1 down
B
}
# the fast link is called ib0
shape_ib_names() {
  in_net "$1" ip -batch - <<B
link set eth1 down
link set eth1 name ib0
link set ib0 up
B
}
# the address of eth0 sits on a bridge over it, as on a KVM host
shape_bridge() {
  in_net "$1" ip -batch - <<B
link add br-lan type bridge
link set br-lan address $(mac "$1" 0)
addr flush dev eth0
link set eth0 master br-lan
addr add $NET0.$((10 + $1))/24 dev br-lan
link set br-lan up
route replace default via $NET0.1 dev br-lan
B
}
# virbr0 192.168.122.1 without carrier, equal on every host
shape_virbr() {
  in_net "$1" ip -batch - <<'B'
link add virbr0 type bridge
addr add 192.168.122.1/24 dev virbr0
link set virbr0 up
link add vv0 type veth peer name vv1
link set vv0 master virbr0
link del vv0
B
}
# nodelocaldns 169.254.20.10, equal on every host
shape_nodelocaldns() {
  in_net "$1" ip -batch - <<'B'
link add nodelocaldns type bridge
addr add 169.254.20.10/32 dev nodelocaldns
B
}
# a VPN-like tun0 10.99.0.(10+i) that reaches the same tun0 of all hosts (apply to all)
shape_vpn() {
  [ -e "$R/sw-vpn.pid" ] && return 0
  local names=() i t
  for i in $(each all); do names+=("$LAB-n$i"); done
  setsid /usr/bin/python3 "$here/tools/tunhub.py" 10.99.0 "${names[@]}" > "$R/vpn.log" 2>&1 < /dev/null &
  echo $! > "$R/sw-vpn.pid"
  i=$(($(size) - 1))
  for ((t = 0; t < 100; t++)); do in_net "$i" ip -4 addr show tun0 2> /dev/null | grep -q 10.99 && return 0; sleep 0.05; done
  cat "$R/vpn.log" >&2; die "no tun0"
}
# a VPN tun0 of this host only (a laptop-like VPN client): nobody else is behind it
shape_vpn_alone() {
  setsid /usr/bin/python3 "$here/tools/tunhub.py" "10.$((200 + $1)).0" "$LAB-n$1" > "$R/vpn.log" 2>&1 < /dev/null &
  echo $! > "$R/sw-vpn$1.pid"
  local t
  for ((t = 0; t < 100; t++)); do in_net "$1" ip -4 addr show tun0 2> /dev/null | grep -q 10.2 && return 0; sleep 0.05; done
  cat "$R/vpn.log" >&2; die "no tun0"
}
# names come from a real DNS server, not from /etc/hosts (apply to all)
shape_dns() {
  if [ ! -e "$R/sw-dns.pid" ]; then
    ip -n "$SW" addr add "$NET0.2/24" dev br0
    ip netns exec "$SW" setsid /usr/bin/python3 "$here/tools/dns.py" "$NET0.2" "$R/hosts" > "$R/dns.log" 2>&1 < /dev/null &
    echo $! > "$R/sw-dns.pid"
    local t
    for ((t = 0; t < 100; t++)); do [ -n "$(ip netns exec "$SW" ss -ulnH sport = :53)" ] && break; sleep 0.05; done
  fi
  in_host "$1" sh -c 'printf "127.0.0.1 localhost\n" > /etc/hosts; echo "nameserver $0" > /etc/resolv.conf' "$NET0.2"
}
# shells that talk: motd-like text from .bashrc, a banner, an stty that fails
shape_noise() {
  cat > "$R/home.n$1/root/.bashrc" <<'B'
echo "*** Welcome to the cluster. Maintenance on Friday. ***"
echo "Loading module cuda/12.2 ... done" >&2
printf '\033[1mquota: 81%%\033[0m\n'
stty sane
for k in $(seq 60); do echo "notice $k: please read the wiki"; done
B
  cp "$R/home.n$1/root/.bashrc" "$R/home.n$1/lab/.bashrc"
  in_host "$1" sh -c 'echo "Authorised use only" > /etc/issue.net; echo "Banner /etc/issue.net" >> /etc/ssh/sshd_config; pkill -HUP -o -x sshd'
}
# a default-drop nft firewall that allows the peers' networks
shape_firewall_ok() {
  script "$1" <<N
table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif "lo" accept
    ct state established,related accept
    meta l4proto icmp accept
    tcp dport 22 accept
    ip saddr { $NET0.0/24, $NET1.0/24 } accept
  }
}
N
}
# ufw with its defaults that allows the peers' networks
shape_ufw_ok() {
  in_host "$1" bash -c 'ufw allow 22/tcp && ufw allow from "$0" && ufw allow from "$1" && ufw --force enable' \
    "$NET0.0/24" "$NET1.0/24" > "$R/ufw.n$1.log" 2>&1
}
# ICMP dropped, echo and errors alike
shape_no_icmp() { rule "$1" in meta l4proto icmp counter drop; rule "$1" out meta l4proto icmp counter drop; }
# replies leave by another link than requests came in by, and nothing minds (rp_filter off)
shape_asymmetric() { in_net "$1" ip route add "$NET1.0/28" dev eth0; }
# docker0 with another MTU than elsewhere (a link that no job uses)
shape_docker_mtu() { in_net "$1" ip link set docker0 mtu 1450; }
# [LOW HIGH]: another ephemeral range
shape_port_range() { in_host "$1" sysctl -qw net.ipv4.ip_local_port_range="${2:-20000} ${3:-20999}"; }
# PORT: closed connections of PORT in TIME-WAIT, as a job that just ended leaves them
shape_time_wait() {
  in_host "$1" /usr/bin/python3 -c 'import socket, sys
p = int(sys.argv[1])
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind(("", p)); l.listen(8)
for _ in range(4):
    c = socket.create_connection(("127.0.0.1", p)); a = l.accept()[0]; a.close(); c.close()' "$2"
}
