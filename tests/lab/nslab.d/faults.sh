# shellcheck shell=bash disable=SC2154
# What can be broken. One function a kind, `fault_KIND INDEX ARG ...`; the comment above is its help.

NFT_BASE='table inet lab {
  chain in { type filter hook input priority 0; }
  chain out { type filter hook output priority 0; }
}'
rule() {  # INDEX CHAIN RULE ...: a rule in the lab's own nft table
  local i=$1 chain=$2; shift 2
  in_net "$i" nft -f - <<< "$NFT_BASE"
  in_net "$i" nft add rule inet lab "$chain" "$@"
}
script() {  # INDEX: an nft script from stdin
  in_net "$1" nft -f -
}

# PORT: incoming TCP to PORT vanishes (nft)
fault_drop() { rule "$1" in tcp dport "$2" counter drop; }
# PORT: incoming TCP to PORT answered by a reset (looks like a closed port)
fault_reject() { rule "$1" in tcp dport "$2" counter reject with tcp reset; }
# PORT [TYPE]: incoming TCP to PORT answered by ICMP (admin-prohibited, host-unreachable, port-unreachable ...)
fault_reject_icmp() { rule "$1" in tcp dport "$2" counter reject with icmpx type "${3:-admin-prohibited}"; }
# PORT [TYPE]: the same with the IPv4-only ICMP types (host-prohibited, net-prohibited, net-unreachable ...)
fault_reject_icmp4() { rule "$1" in meta nfproto ipv4 tcp dport "$2" counter reject with icmp type "${3:-host-prohibited}"; }
# PORT: TCP to PORT vanishes in the switch, on neither host (a security group, a switch ACL)
fault_drop_between() {
  ip netns exec "$SW" nft -f - <<N
table bridge between {
  chain forward { type filter hook forward priority 0;
    oifname "n${1}*" tcp dport $2 counter drop
  }
}
N
}
# [RANGE]: connections to ephemeral ports vanish, the well-known ones pass
fault_drop_ephemeral() { rule "$1" in tcp flags '&' '(syn|ack)' == syn tcp dport "${2:-32768-60999}" counter drop; }
# [RANGE]: connections to ephemeral ports are answered by a reset
fault_reject_ephemeral() { rule "$1" in tcp flags '&' '(syn|ack)' == syn tcp dport "${2:-32768-60999}" counter reject with tcp reset; }
# ADDRESS: everything from ADDRESS vanishes
fault_drop_from() { rule "$1" in ip saddr "$2" counter drop; }
# ADDRESS: ADDRESS may not open connections to us, we may to it (one-way)
fault_drop_new_from() { rule "$1" in ip saddr "$2" ct state new tcp dport != 22 counter drop; }
# PORT: outgoing TCP to PORT vanishes
fault_drop_out() { rule "$1" out tcp dport "$2" counter drop; }
# PORT: the answers of whoever listens at PORT vanish before they leave (nft, iptables)
fault_drop_answers() { rule "$1" out tcp sport "$2" counter drop; }
fault_iptables_drop_answers() { in_net "$1" iptables -A OUTPUT -p tcp --sport "$2" -j DROP; }
# PORT: connections to PORT open, and their data vanishes
fault_iptables_drop_data() { in_net "$1" iptables -A INPUT -p tcp ! --sport 22 --dport "$2" --tcp-flags PSH PSH -j DROP; }
# ADDRESS [LINK]: a static neighbour entry with a MAC that nobody has
fault_wrong_neighbour() { in_net "$1" ip neigh replace "$2" lladdr 02:00:00:00:00:99 nud permanent dev "${3:-eth1}"; }
# PORT: incoming UDP to PORT vanishes
fault_udp_drop() { rule "$1" in udp dport "$2" counter drop; }
# PERCENT [LINK]: incoming packets are lost at random
fault_loss() { rule "$1" in iifname "${3:-eth1}" numgen random mod 100 '<' "$2" counter drop; }
# PORT: dropped by the second of two base chains; the first one accepts it
fault_two_chains() {
  script "$1" <<N
table inet site {
  chain input { type filter hook input priority -5; policy accept;
    tcp dport $2 accept
  }
}
table ip guard {
  chain filter_in { type filter hook input priority 10; policy accept;
    ct state established,related accept
    tcp dport { $2, 32768-60999 } counter drop
  }
}
N
}
# two base chains, both with policy drop and ssh allowed
fault_two_policies() {
  script "$1" <<'N'
table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif "lo" accept
    ct state established,related accept
    icmp type echo-request accept
    tcp dport 22 accept
  }
}
table ip guard {
  chain filter_in { type filter hook input priority 10; policy drop;
    iif "lo" accept
    ct state established,related accept
    tcp dport 22 accept
  }
}
N
}
# PORT: PORT and the ephemeral range are in a set, the peers in another; a chain below the base one drops them
fault_drop_set() {
  script "$1" <<N
table inet site {
  set peers { type ipv4_addr; flags interval; elements = { $NET0.0/24, $NET1.0/24 }
  }
  set ports { type inet_service; flags interval; elements = { $2, 32768-60999 }
  }
  chain deep {
    tcp dport 22 accept
    ct state established,related accept
    ip saddr @peers tcp dport @ports counter drop
  }
  chain input { type filter hook input priority 0; policy accept;
    iif "lo" accept
    jump deep
  }
}
N
}
# a hardened host: nft input policy drop, only ssh and ping allowed
fault_policy_drop() {
  script "$1" <<'N'
table inet filter {
  chain input { type filter hook input priority 0; policy drop;
    iif "lo" accept
    ct state established,related accept
    meta l4proto { icmp, ipv6-icmp } accept
    tcp dport 22 accept
  }
}
N
}
# PORT: dropped by an iptables rule
fault_iptables_drop() { in_net "$1" iptables -A INPUT -p tcp --dport "$2" -j DROP; }
# nothing that the host sends to its own addresses comes in
fault_no_loopback() { in_net "$1" iptables -A INPUT -i lo -j DROP; }
# a firewall written by hand: the peers, ssh and answers may come in, the loopback link was forgotten
fault_forgot_loopback() {
  in_net "$1" iptables-restore <<N
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -i eth0 -s $NET0.0/24 -j ACCEPT
-A INPUT -i eth1 -s $NET1.0/24 -j ACCEPT
COMMIT
N
}
# PORT: dropped before routing, by a match that counts connections
fault_mangle_drop() {
  in_net "$1" iptables -t mangle -A PREROUTING -p tcp --syn --dport "$2" -m connlimit --connlimit-above 0 -j DROP
}
# PORT: dropped by an iptables rule of a match that looks into the packet
fault_iptables_u32_drop() {
  in_net "$1" iptables -t raw -A PREROUTING -p tcp --dport "$2" -m u32 --u32 "6&0xFF=6" -j DROP
}
# PORT: dropped by a rule of iptables-legacy, which nft does not show
fault_iptables_legacy_drop() {
  in_net "$1" iptables-legacy -A INPUT -i lo -j ACCEPT
  in_net "$1" iptables-legacy -A INPUT -p tcp --dport "$2" -j DROP
}
# PORT: dropped in a chain of the site that INPUT leads to, as docker's DOCKER-USER, with the ephemeral ports
fault_iptables_user_chain() {
  in_net "$1" iptables-restore <<N
*filter
:INPUT ACCEPT [0:0]
:DOCKER-USER - [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -j DOCKER-USER
-A DOCKER-USER -p tcp -m tcp --dport 22 -j RETURN
-A DOCKER-USER -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A DOCKER-USER -p tcp -m multiport --dports $2,32768:60999 -j DROP
-A DOCKER-USER -j RETURN
COMMIT
N
}
# iptables with INPUT policy DROP, ssh allowed, the rest rejected by the last rule as RHEL does
fault_iptables_reject_all() {
  in_net "$1" iptables-restore <<'N'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m state --state ESTABLISHED,RELATED -j ACCEPT
-A INPUT -p icmp -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m state --state NEW -m tcp --dport 22 -j ACCEPT
-A INPUT -j REJECT --reject-with icmp-host-prohibited
COMMIT
N
}
# ufw enabled with its defaults, ssh allowed
fault_ufw() {
  in_host "$1" bash -c 'sed -i "s/^IPV6=.*/IPV6=yes/" /etc/default/ufw
    ufw allow 22/tcp && ufw --force enable' > "$R/ufw.n$1.log" 2>&1 || { cat "$R/ufw.n$1.log" >&2; return 1; }
}
# firewalld running with its public zone (ssh only)
fault_firewalld() {
  in_host "$1" bash -c '
    sed -i "s/^CleanupModulesOnExit=.*/CleanupModulesOnExit=no/" /etc/firewalld/firewalld.conf
    dbus-daemon --system --fork --nopidfile --address=unix:path=/run/dbus/system_bus_socket &&
    setsid --fork firewalld --nofork --nopid > /var/log/firewalld.out 2>&1 < /dev/null
    for t in $(seq 200); do firewall-cmd --state > /dev/null 2>&1 && exit 0; sleep 0.05; done
    cat /var/log/firewalld.out; exit 1' > "$R/firewalld.n$1.log" 2>&1 || { cat "$R/firewalld.n$1.log" >&2; return 1; }
}

# MTU [LINK]: a smaller MTU on the host, visible in `ip link`
fault_mtu() { in_net "$1" ip link set "${3:-eth1}" mtu "$2"; }
# [MTU]: the switch port of eth1 carries less than the hosts believe; large packets vanish
fault_mtu_blackhole() {
  local j
  ip -n "$SW" link set "n${1}f" mtu "${2:-1500}"
  # veth lets GSO frames through whatever the MTU; real cards do not.
  for j in $(each all); do in_net "$j" ethtool -K eth1 tso off gso off gro off > /dev/null 2>&1 || true; done
}
# BYTES: outgoing TCP packets of BYTES and more vanish, as where a card cuts large sends wrongly; ssh is spared
fault_long_packets() {
  in_net "$1" iptables -A OUTPUT -p tcp ! --sport 22 ! --dport 22 -m length --length "$2:65535" -j DROP
}
# ROUTER NET: a container with only NET.2 (10.5.0), behind host ROUTER, which translates what goes out and hands on what comes in by ssh
fault_container_bridge() {
  local i=$1 r=${2#node} net=$3
  in_host "$i" touch /run/.containerenv
  in_net "$i" ip -batch - <<B
link set eth1 down
addr flush dev eth0
addr add $net.2/24 dev eth0
route replace default via $net.1 dev eth0
B
  in_host "$i" sh -c "sed '/node$i/d' /etc/hosts > /etc/hosts.new; echo '$net.2 node$i' >> /etc/hosts.new; mv /etc/hosts.new /etc/hosts"
  in_net "$r" sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.eth0.send_redirects=0
  in_net "$r" ip -batch - <<B
addr add $net.1/24 dev eth0
addr add $NET0.$((10 + i))/32 dev eth0
B
  in_net "$r" nft -f - <<N
table ip translating {
  chain in { type nat hook prerouting priority -100; ip daddr $NET0.$((10 + i)) tcp dport 22 dnat to $net.2; }
  chain out { type nat hook postrouting priority 100; ip saddr $net.2 snat to $NET0.$((10 + r)); }
}
N
}
# [PREFIX]: the route to the fast net is gone
fault_no_route() { in_net "$1" ip route del "${2:-$NET1.0/24}"; }
# the default route is gone
fault_no_default() { in_net "$1" ip route del default; }
# PREFIX: an `unreachable` route
fault_unreachable() { in_net "$1" ip route add unreachable "$2"; }
# PREFIX: a policy rule sends traffic for PREFIX into an empty table with a blackhole
fault_policy_rule() {
  in_net "$1" ip rule add to "$2" pref 100 lookup 100
  in_net "$1" ip route add blackhole default table 100
}
# PORT: a policy rule forbids connections to PORT; the routes are right
fault_policy_rule_port() { in_net "$1" ip rule add ipproto tcp dport "$2" blackhole; }
# PREFIX: a route by a router that is not there, before that of the link
fault_dead_router() { in_net "$1" ip route add "$2" via "$NET0.1"; }
# ADDRESS [LINK]: takes ADDRESS, another host's, as its own too
fault_dup_ip() {
  in_net "$1" ip addr add "$2/24" dev "${3:-eth1}"
  background "$1" /usr/bin/python3 "$here/tools/announce.py" "${3:-eth1}" "$2"
}
# [LINK]: administratively down
fault_link_down() { in_net "$1" ip link set "${2:-eth1}" down; }
# [LINK]: cable pulled (NO-CARRIER)
fault_no_carrier() {
  local side=f
  [ "${2:-eth1}" != eth0 ] || side=m
  ip -n "$SW" link set "n$1$side" down
}
# RATE [LINK]: egress limited, e.g. 50mbit
fault_slow() { in_net "$1" tc qdisc replace dev "${3:-eth1}" root tbf rate "$2" burst 64kb latency 100ms; }
# MS [LOSS%]: eth1 delayed both ways by a user-space relay
fault_delay() {
  local t
  ip netns exec "$SW" /usr/bin/python3 "$here/tools/tapdelay.py" "ta$1" "tb$1" "$2" "${3:-0}" > /dev/null 2>&1 &
  echo $! > "$R/sw-delay$1.pid"
  for ((t = 0; t < 100; t++)); do ip -n "$SW" link show "tb$1" > /dev/null 2>&1 && break; sleep 0.05; done
  ip -n "$SW" -batch - <<B
link add brd$1 mtu 9000 type bridge
link set n${1}f master brd$1
link set ta$1 mtu 9000 master brd$1 up
link set tb$1 mtu 9000 master br1 up
link set brd$1 up
B
}
# [NET]: strict rp_filter, and the peers' traffic comes in on eth1 but would go out by eth0
fault_rp_filter() {
  in_host "$1" sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.eth1.rp_filter=1
  in_net "$1" ip route replace "${2:-$NET1.0/24}" dev eth0
  in_net "$1" ip route del "$NET1.0/24" dev eth1 2> /dev/null || true
}
# a second NIC in the subnet of eth0 (eth1 moves there); strict rp_filter with arp_ignore=1: it answers nobody
fault_same_subnet() {
  ip -n "$SW" link set "n${1}f" mtu 1500 master br0
  in_net "$1" ip -batch - <<B
link set eth1 mtu 1500
addr flush dev eth1
addr add $NET0.$((110 + $1))/24 dev eth1
B
  in_host "$1" sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.eth0.rp_filter=1 \
    net.ipv4.conf.eth1.rp_filter=1 net.ipv4.conf.all.arp_ignore=1
}
# NAME ADDRESS: one more link, with carrier and the lowest index, behind which are no peers (VPN, bridge, link-local)
fault_first_link() {
  local l
  for l in eth0 eth1 docker0; do in_net "$1" ip link del "$l" 2> /dev/null || true; done
  in_net "$1" ip -batch - <<B
link add $2 type veth peer name far0
link set far0 up
addr add $3 dev $2
link set $2 up
B
  wire_host "$1"
}
# docker0 up with a container on it
fault_docker_up() {
  in_net "$1" ip -batch - <<'B'
link add veth1a2b type veth peer name cont0
link set veth1a2b master docker0
link set veth1a2b up
link set cont0 up
B
}
# no IPv4 on eth0, IPv6 instead (fd00:10::)
fault_no_ipv4() {
  in_net "$1" ip addr flush dev eth0
  in_net "$1" ip addr flush dev eth1
  in_net "$1" ip addr add "fd00:10::$((10 + $1))/64" dev eth0 nodad
}
# the connection tracking table is full (a real one: filled through ctnetlink)
fault_conntrack_full() {
  rule "$1" in ct state established accept
  in_host "$1" /usr/bin/python3 "$here/tools/conntrack_fill.py"
}

# PORT [SECS]: another program listens there
fault_port() { squat "$1" --listen "$2" --seconds "${3:-600}"; }
# PORT: another program has bound it and does not listen
fault_port_bound() { squat "$1" --bound "$2"; }
# PORT: something that is not a TCPStore answers (an HTTP server)
fault_wrong_service() { squat "$1" --http "$2"; }
# PORT: a rank of a job that ended (launcher gone) still holds the port
fault_port_stale() { squat "$1" --stale "$2"; }
# PORT PEER: an outgoing connection of another program sits on PORT
fault_port_out() { squat "$1" --outgoing "$2" --peer "$3"; }
# PORT: a listener that never accepts and whose queue is full
fault_backlog_full() { squat "$1" --backlog-full "$2"; }
squat() {
  local i=$1 t; shift
  in_host "$i" rm -f /run/squat.ready
  background "$i" /usr/bin/python3 "$here/tools/squat.py" "$@"
  for ((t = 0; t < 100; t++)); do in_host "$i" test -e /run/squat.ready && return 0; sleep 0.05; done
  cat "$R/helper.n$i.log" >&2
  die "squat.py did not come up on node$i"
}

# the host's own name is 127.0.1.1, as Debian's installer writes it
fault_dns_loopback() {
  in_host "$1" sh -c 'grep -v " $0\$" /etc/hosts > /etc/hosts.new
    echo "127.0.1.1 $0" >> /etc/hosts.new; mv /etc/hosts.new /etc/hosts' "node$1"
}
# NAME: that name does not resolve here
fault_hosts_less() {
  in_host "$1" sh -c 'grep -v " $0\$" /etc/hosts > /etc/hosts.new; mv /etc/hosts.new /etc/hosts' "$2"
}
# NAME ADDRESS: that name answers with ADDRESS here
fault_hosts_set() {
  fault_hosts_less "$1" "$2"
  in_host "$1" sh -c 'echo "$1 $0" >> /etc/hosts' "$2" "$3"
}
# a name server that never answers (names not in /etc/hosts hang)
fault_dns_silent() {
  in_host "$1" sh -c 'echo "nameserver $0" > /etc/resolv.conf' "$NET0.250"
  in_net "$1" ip neigh replace "$NET0.250" lladdr 02:00:00:00:00:fe dev eth0 nud permanent
}
# NAME: another hostname
fault_hostname() { in_host "$1" sh -c 'hostname "$0"; echo "$0" > /etc/hostname' "$2"; }

# SIZE: /dev/shm of that size
fault_shm() { in_host "$1" mount -o remount,size="$2" /dev/shm; }
# /dev/shm full of another program's file
fault_shm_full() { in_host "$1" sh -c 'cat /dev/zero > /dev/shm/other-program 2> /dev/null || true'; }
# /dev/shm read-only
fault_shm_ro() { in_host "$1" mount -o remount,ro /dev/shm; }
# [MINUTES]: /dev/shm nearly full of old NCCL segments that nobody maps
fault_shm_stale() {
  in_host "$1" sh -c 'for k in 1 2 3 4 5 6; do f=/dev/shm/nccl-Stale$k
    head -c 10M /dev/zero > $f; touch -d "-$0 minutes" $f; done' "${2:-90}"
}
# ARGS: resource limits of the host as prlimit takes them, e.g. --memlock=65536:65536
fault_ulimit() { local i=$1; shift; prlimit --pid "$(init_pid "$i")" "$@"; in_host "$i" pkill -o -x sshd; start_sshd "$i"; }
# KEY=VALUE: a sysctl of the host
fault_sysctl() { in_host "$1" sysctl -qw "$2"; }
# TEXT: a line in /etc/nccl.conf
fault_nccl_conf() { in_host "$1" sh -c 'echo "$0" >> /etc/nccl.conf' "$2"; }

# sshd stopped
fault_ssh_down() { in_host "$1" pkill -o -x sshd; }
# sshd takes the connection and says nothing
fault_ssh_silent() { in_host "$1" pkill -STOP -o -x sshd; }
# ssh refuses our key
fault_ssh_key() { in_host "$1" sh -c 'rm /etc/ssh/sshd_config; sed "s/^AuthorizedKeysFile.*/AuthorizedKeysFile none/" "$0" > /etc/ssh/sshd_config; pkill -HUP -o -x sshd' "$R/ssh/sshd_config"; }
