package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/fault"
)

// Kind is a kind of fault, or of what a person does.
type Kind string

// The faults.
const (
	KindKill    Kind = "kill"         // a process is ended as kill -9 does
	KindHold    Kind = "hold"         // a process is stopped for a while, past its lease and its acknowledgements, and goes on
	KindPoint   Kind = "point"        // a process is ended and started anew with a fault point armed
	KindBusKill Kind = "bus kill"     // the bus, or one of its servers, is ended as kill -9 does
	KindBusHold Kind = "bus hold"     // it is stopped for a while
	KindBusAway Kind = "bus away"     // it is ended again and again for a while
	KindLow     Kind = "disk low"     // less is free than a paid call needs
	KindFull    Kind = "disk full"    // nothing more can be written
	KindPoison  Kind = "poison"       // a message that cannot be read, is unknown, or cannot be applied
	KindHangUp  Kind = "hang up"      // a person breaks a write off and sends it again under its key
	KindTwice   Kind = "sent twice"   // a write is sent twice at once under one key
	KindAnswer  Kind = "provider"     // the provider's answer goes wrong
	KindRefused Kind = "provider 4xx" // the provider refuses
)

// Step is one fault of a script.
type Step struct {
	At     time.Duration // from the beginning
	Kind   Kind
	Target string        // a process, or the subject of a poisoned message
	For    time.Duration // how long it lasts
	Faults string        // of KindPoint, in the form of FACTSTREAM_FAULT
	Body   string        // of KindPoison; %t stands for a thread
}

// Move is one thing that a person does. Which thread or run it is about is chosen by Pick among those that there are.
type Move struct {
	At     time.Duration
	Person int
	Action string
	Pick   uint64
	Body   map[string]any
	How    Kind // "" for in good order, KindHangUp or KindTwice
}

// Script is everything that happens, as the seed has it. What comes of it depends on the machine too.
type Script struct {
	Seed     uint64
	Duration time.Duration
	Steps    []Step           // by time
	Moves    []Move           // by time
	Answers  []standin.Answer // of the provider, for one call after the other
	Answer   standin.Answer   // of the provider, for all calls after those
}

// Setting is what a script may choose from.
type Setting struct {
	Processes []string // but the bus
	Servers   []string // those of the bus
	Points    []fault.Point
	Disk      bool // whether the disk may be filled
}

// persons is how many act at the same time.
const persons = 4

// NewScript makes the script of a seed: the same for the same arguments.
func NewScript(seed uint64, duration time.Duration, s Setting) Script {
	random := rand.New(rand.NewPCG(seed, 0x666163747374)) //nolint:gosec // it has to be repeatable
	script := Script{Seed: seed, Duration: duration, Answer: standin.Answer{Piece: 2048}}
	script.steps(random, s)
	script.moves(random)
	for range int(duration/(100*time.Millisecond)) + 50 {
		script.Answers = append(script.Answers, answer(random))
	}
	return script
}

// Load is work in good order while the servers of the bus are killed one after the other.
type Load struct {
	Threads int
	Every   time.Duration // between two kills
}

// budgets are those of the threads of a load: for one run, for two, and for a balanced one that is left over.
var budgets = []int{250, 500, 600}

// NewLoadScript makes a script of kills for at most duration. One person opens and starts the threads; the provider gives whole
// answers, each of which takes a while.
func NewLoadScript(seed uint64, duration time.Duration, load Load, servers []string) Script {
	random := rand.New(rand.NewPCG(seed, 0x6c6f6164)) //nolint:gosec // it has to be repeatable
	script := Script{Seed: seed, Duration: duration, Answer: standin.Answer{Piece: 512, Delay: 60 * time.Millisecond}}
	for at, n := load.Every, random.IntN(len(servers)); at < duration; at, n = at+load.Every, n+1 {
		script.Steps = append(script.Steps, Step{At: at, Kind: KindBusKill, Target: servers[n%len(servers)]})
	}
	for i := range load.Threads {
		body := newThread(random, true)
		body["budget"], body["depth"] = budgets[i%len(budgets)], 1
		script.Moves = append(script.Moves,
			Move{Action: "create", Body: body},
			Move{Action: "start", Pick: uint64(i), Body: map[string]any{}})
	}
	return script
}

// String is a short name of what is in the script, to compare two by.
func (s Script) String() string {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%v%v%v", s.Steps, s.Moves, s.Answers)
	return fmt.Sprintf("%016x", sum.Sum64())
}

func (s *Script) steps(random *rand.Rand, setting Setting) {
	poisons := Poisons()
	server := func() string {
		if len(setting.Servers) == 1 {
			return setting.Servers[0]
		}
		return setting.Servers[random.IntN(len(setting.Servers))]
	}
	for at := 300 * time.Millisecond; at < s.Duration; at += between(random, 60*time.Millisecond, 500*time.Millisecond) {
		step := Step{At: at, Target: setting.Processes[random.IntN(len(setting.Processes))]}
		switch n := random.IntN(100); {
		case n < 30:
			step.Kind = KindKill
		case n < 48:
			step.Kind, step.For = KindHold, between(random, 100*time.Millisecond, 1200*time.Millisecond)
			if random.IntN(4) == 0 { // past the lease and the time of acknowledgements
				step.For = between(random, 2500*time.Millisecond, 5*time.Second)
			}
		case n < 78:
			step.Kind = KindPoint
			step.Target, step.Faults = point(random, setting)
		case n < 81:
			step.Kind, step.Target = KindBusKill, server()
		case n < 83:
			step.Kind, step.Target, step.For = KindBusHold, server(), between(random, 500*time.Millisecond, 3*time.Second)
		case n < 84:
			step.Kind, step.Target, step.For = KindBusAway, server(), between(random, 2*time.Second, 6*time.Second)
		case n < 97 || !setting.Disk:
			poison := poisons[random.IntN(len(poisons))]
			step.Kind, step.Target, step.Body = KindPoison, poison[0], poison[1]
		case n < 99:
			step.Kind, step.Target, step.For = KindLow, "", between(random, time.Second, 3*time.Second)
		default:
			step.Kind, step.Target, step.For = KindFull, "", between(random, time.Second, 3*time.Second)
		}
		s.Steps = append(s.Steps, step)
	}
}

// point chooses a process and arms some of its points, as they lie on the way of one step.
func point(random *rand.Rand, setting Setting) (process, faults string) {
	process = setting.Processes[random.IntN(len(setting.Processes))]
	program := programOf(process)
	var own []string
	for _, p := range setting.Points {
		if service, _, _ := strings.Cut(p.Name, "."); service == program {
			own = append(own, p.Name)
		}
	}
	var armed []string
	for range 1 + random.IntN(3) {
		action := []string{"kill", "kill", "kill", "fail", "delay:300ms", "delay:3s"}[random.IntN(6)]
		name := own[random.IntN(len(own))]
		if slices.ContainsFunc(armed, func(a string) bool { return strings.HasPrefix(a, name+"=") }) {
			continue
		}
		armed = append(armed, fmt.Sprintf("%s=%s@%d", name, action, 1+random.IntN(2)))
	}
	return process, strings.Join(armed, ",")
}

// programOf is the program of a process: "researcher" of "researcher-2".
func programOf(process string) string {
	program, _, _ := strings.Cut(process, "-")
	return program
}

// Poisons are subjects and bodies that no worker can do anything about: four on each subject that is consumed (cut off, of another
// thread, of an unknown version, with data of another form), and others. %t stands for a thread and %i for an id.
func Poisons() (out [][2]string) {
	for _, kind := range []string{"run.requested", "thread.settled", "run.completed", "facts.distilled", "contradictions.found", "run.failed", "stage.failed", "stage.retried"} {
		subject := kind + ".%t.poisoned.0"
		out = append(out,
			[2]string{subject, `{"id": "cut o`},
			[2]string{subject, `{"id":"%i","type":"factstream.` + kind + `.v1","thread":"another","n":0,"data":{}}`},
			[2]string{subject, `{"id":"%i","type":"factstream.` + kind + `.v99","thread":"%t","n":0,"data":{"new":true}}`},
			[2]string{subject, `{"id":"%i","type":"factstream.` + kind + `.v1","thread":"%t","n":0,"data":[1,2,3]}`})
	}
	return append(out,
		[2]string{"thread.dreamt.%t.0.0", `{"id":"%i","type":"factstream.thread.dreamt.v1","thread":"%t","n":0,"data":{}}`},
		[2]string{"ext.noticed.%t.0.0", `{"id":"%i","type":"ext.noticed","thread":"%t","n":0,"data":{"seen":1}}`},
		[2]string{"ext.noticed.%t.0.0", "\x00\xff"})
}

func (s *Script) moves(random *rand.Rand) {
	// Whatever comes, there is something to break: the first moves open threads.
	for i := range persons {
		s.Moves = append(s.Moves, Move{At: time.Duration(i) * 20 * time.Millisecond, Person: i, Action: "create", Pick: random.Uint64(), Body: newThread(random, true)})
	}
	for at := 200 * time.Millisecond; at < s.Duration; at += between(random, 40*time.Millisecond, 400*time.Millisecond) {
		m := Move{At: at, Person: random.IntN(persons), Pick: random.Uint64(), Body: map[string]any{}}
		switch random.IntN(8) {
		case 0:
			m.How = KindHangUp
		case 1:
			m.How = KindTwice
		}
		switch n := random.IntN(100); {
		case n < 22:
			m.Action, m.Body = "create", newThread(random, random.IntN(3) > 0)
		case n < 42:
			m.Action = "start"
		case n < 50:
			m.Action = "pause"
		case n < 66:
			m.Action = "run"
			m.Body["mode"] = []string{"fast", "fast", "balanced"}[random.IntN(3)]
			if random.IntN(3) == 0 {
				m.Body["question"] = fmt.Sprintf("And what of part %d?", random.IntN(1000))
			}
		case n < 72:
			m.Action = "cancel"
		case n < 79:
			m.Action = "retry"
			m.Body["stage"] = []string{"distill", "judge", "questions", "brief", "coverage"}[random.IntN(5)]
		case n < 83:
			m.Action = "rebuild"
		case n < 91:
			m.Action = "configure"
			m.Body["budget"] = []int{0, 250, 600, 1000, 1500}[random.IntN(5)]
			if random.IntN(2) == 0 {
				m.Body["auto"] = random.IntN(2) == 0
			}
		case n < 95:
			m.Action = "ask"
			m.Body["text"] = fmt.Sprintf("What else is there, number %d?", random.IntN(1000))
		case n < 97:
			m.Action = "forget run"
		default:
			m.Action = "delete"
		}
		s.Moves = append(s.Moves, m)
	}
}

func newThread(random *rand.Rand, auto bool) map[string]any {
	return map[string]any{
		"question": fmt.Sprintf("How close are solid-state batteries to mass production, seen from place %d?", random.IntN(1_000_000)),
		"budget":   []int{250, 500, 750, 1000}[random.IntN(4)], "batch": 1 + random.IntN(3), "depth": random.IntN(4), "auto": auto,
	}
}

// answer is what the provider does with one call: a whole one in four of seven cases.
func answer(random *rand.Rand) standin.Answer {
	a := standin.Answer{Piece: 1024 << random.IntN(3), Delay: between(random, 0, 12*time.Millisecond)}
	switch random.IntN(21) {
	case 0, 1:
		a.Fault, a.After = standin.Reset, random.IntN(20_000)
	case 2:
		a.Fault, a.After = standin.Close, random.IntN(20_000)
	case 3:
		a.Fault, a.After = standin.End, random.IntN(20_000)
	case 4:
		a.Fault, a.After = standin.Stall, random.IntN(20_000)
	case 5:
		a.Fault = standin.Drop
	case 6:
		a.Status, a.Body = http.StatusServiceUnavailable, "<html>busy</html>"
	case 7:
		a.Status, a.Body, a.Header = http.StatusTooManyRequests, "{}", map[string]string{"Retry-After": "1"}
	case 8:
		a.Body = "event: error\ndata: {\"error\":\"the provider failed\"}\n\n"
	}
	return a
}

// between is a time in a range.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
