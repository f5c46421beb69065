package up

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
)

func TestAServerIsToldByItsArgumentsWhichOneItIs(t *testing.T) {
	t.Parallel()
	m := Member{Number: 2, Port: 4223, Routes: [embedded.Servers]int{6222, 6223, 6224}, MaxStore: 7 << 30}
	args := m.Args()
	require.Equal(t, MemberCommand, args[0])
	got, err := ParseMember(args[1:])
	require.NoError(t, err)
	require.Equal(t, m, got)
	require.Equal(t, "bus-2", m.Name())

	for _, wrong := range [][]string{
		nil, {"--number", "4"}, {"--nonsense"},
		append(args[1:len(args):len(args)], "more"),
		Member{Number: 4, Port: 1, MaxStore: 1}.Args()[1:], Member{Number: 1, MaxStore: 1}.Args()[1:], Member{Number: 1, Port: 1}.Args()[1:],
	} {
		_, err := ParseMember(wrong)
		require.ErrorIs(t, err, ErrMember, "%v", wrong)
	}
}

func TestTheSecondGatewayHasThePortAfterTheFirst(t *testing.T) {
	t.Parallel()
	var base string
	for base == "" { // two ports side by side that nobody has
		ports, err := embedded.AnyPorts("127.0.0.1", 2)
		require.NoError(t, err)
		if ports[1] == ports[0]+1 {
			base = "127.0.0.1:" + strconv.Itoa(ports[0])
		}
	}
	free, err := freeAddresses(base, 2)
	require.NoError(t, err)
	require.Equal(t, base, free[0])
	_, first, _ := net.SplitHostPort(base)
	n, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.Equal(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(n+1)), free[1])

	two, err := freeAddresses("127.0.0.1:0", 2)
	require.NoError(t, err)
	require.Len(t, two, 2)
	require.NotEqual(t, two[0], two[1])
}

func TestTheGreetingNamesEveryGatewayAndServer(t *testing.T) {
	t.Parallel()
	b := &bus{at: "nats://127.0.0.1:4222,nats://127.0.0.1:4223,nats://127.0.0.1:4224", servers: &servers{}}
	told, _, _ := strings.Cut(greeting(load(t), b, readiness{}, "127.0.0.1:8081"), "Try next:")
	require.Contains(t, told, "ready: http://127.0.0.1:8080\n")
	require.Contains(t, told, "and: http://127.0.0.1:8081\n")
	require.Contains(t, told, b.at+"\n")
	require.Contains(t, told, "three servers")
	for line := range strings.Lines(told) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), columns, line)
	}
}

func TestThreeServersAreNotStartedBesideAnotherBusNorWithAnotherNumberOfCopies(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, RunServers(t.Context(), Options{Config: load(t)}), ErrReplicas)
	cfg := load(t, "NATS_REPLICAS", "3", "NATS_URL", "nats://127.0.0.1:1")
	require.ErrorIs(t, RunServers(t.Context(), Options{Config: cfg}), ErrBusElsewhere)
}

func TestTheFirstGatewayHasTheDataDirectoryAndEachOtherOneItsOwn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, err := GatewayDir(data, 0)
	require.NoError(t, err)
	require.Equal(t, data, first)
	second, err := GatewayDir(data, 1)
	require.NoError(t, err)
	require.DirExists(t, second)
	require.Equal(t, data+"/gateway-2", second)
}

func TestNoServerIsGivenAPortOfAGatewayOrOfAnother(t *testing.T) {
	t.Parallel()
	// given asks for members until nobody else was faster to take a port; where it looks first is found by from.
	given := func(from int, ask func(free []int) (natsPort int, gateways []int)) (members []Member, gateways []int) {
		for {
			free, err := embedded.FreePorts(embedded.DefaultHost, from, embedded.Servers)
			require.NoError(t, err)
			natsPort, gateways := ask(free)
			var addresses []string
			for _, port := range gateways {
				addresses = append(addresses, net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(port)))
			}
			members, err := (&start{cfg: config.Config{NATS: config.NATS{Port: natsPort}}}).members(1<<30, addresses)
			if errors.Is(err, ErrPortInUse) {
				continue
			}
			require.NoError(t, err)
			return members, gateways
		}
	}
	for name, c := range map[string]struct {
		from int
		ask  func(free []int) (int, []int)
	}{
		"gateways where servers are looked for first": {preferredPort, func(free []int) (int, []int) { return 0, free[:2] }},
		"gateways where routes are looked for first":  {preferredRoute, func(free []int) (int, []int) { return 0, free[:2] }},
		"servers where routes are looked for first":   {preferredRoute, func(free []int) (int, []int) { return free[0], nil }},
	} {
		t.Run(name, func(t *testing.T) {
			members, ports := given(c.from, c.ask)
			for _, m := range members {
				ports = append(ports, m.Port, members[0].Routes[m.Number-1])
			}
			slices.Sort(ports)
			require.Len(t, slices.Compact(slices.Clone(ports)), len(ports), "%v", ports)
		})
	}

	ports, err := embedded.AnyPorts(embedded.DefaultHost, 1)
	require.NoError(t, err)
	_, err = (&start{cfg: config.Config{NATS: config.NATS{Port: ports[0]}}}).members(1<<30, []string{net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(ports[0]))})
	require.ErrorIs(t, err, ErrPortInUse)
	require.ErrorContains(t, err, "FACTSTREAM_HTTP")
}
