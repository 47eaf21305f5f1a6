// Package fakebrokers has fake brokers for tests in Go: it starts `fakebrokers serve` and speaks its control API.
//
//	broker := fakebrokers.Serve(t, "rabbitmq-stream")
//	broker.Call("create_stream", fakebrokers.Values{"name": "orders"}, nil)
//	broker.AddFault(`{"name": "lost", "match": {"role": "confirm", "nth": 3}, "effect": {"type": "drop"}}`)
//	...                  // point the client at broker.Host, broker.Port
//	broker.CheckFaults() // each fault took place
//
// What a broker can be told (Call, Ask) is listed in its /openapi.json; the names are those of the Python class.
// Whatever is refused ends the test, with the place and what was expected. The broker ends with the test.
package fakebrokers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const startLimit = 30 * time.Second

// Values are the arguments of an operation by name.
type Values map[string]any

// Record is a line of the journal.
type Record struct {
	Seq        int64
	T          float64
	Connection string
	Tap        string
	Kind       string
	Role       string
	Size       int
	Status     *int
	Fault      string
	Note       string
}

// Broker is a fake broker that runs.
type Broker struct {
	URL  string            // where clients connect
	URLs map[string]string // further addresses by name, "control" among them
	Host string
	Port int

	t    testing.TB
	base string
}

// Serve starts a fake broker with further flags of `fakebrokers serve`, such as "--nodes", "3". The program is
// the words of $FAKEBROKERS, or "fakebrokers".
func Serve(t testing.TB, protocol string, flags ...string) *Broker {
	t.Helper()
	return start(t, protocol, append([]string{"serve", protocol, "--control", "0"}, flags...))
}

// Proxy starts a proxy in front of a real server, with further flags of `fakebrokers proxy`; with "--protocol" its
// faults match frames, and its journal has them.
func Proxy(t testing.TB, upstream string, flags ...string) *Broker {
	t.Helper()
	return start(t, "proxy", append([]string{"proxy", upstream, "--api", "0", "--control", "0"}, flags...))
}

// start starts a program; name is that of its broker in the control API.
func start(t testing.TB, name string, arguments []string) *Broker {
	t.Helper()
	words := strings.Fields(os.Getenv("FAKEBROKERS"))
	if len(words) == 0 {
		words = []string{"fakebrokers"}
	}
	words = append(words, arguments...)
	command := exec.Command(words[0], words[1:]...)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatalf("fakebrokers cannot be run: %v", err)
	}
	t.Cleanup(func() { stop(t, command, &complaint) })
	starting := time.AfterFunc(startLimit, func() { command.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	starting.Stop()
	ready := strings.Fields(line)
	if err != nil || len(ready) < 3 || ready[0] != "READY" {
		t.Fatalf("%s did not start: %q", strings.Join(words, " "), line)
	}
	broker := &Broker{URL: ready[2], URLs: map[string]string{}, t: t}
	for _, pair := range ready[3:] {
		name, address, _ := strings.Cut(pair, "=")
		broker.URLs[name] = address
	}
	if address, err := url.Parse(broker.URL); err == nil {
		broker.Host = address.Hostname()
		broker.Port, _ = strconv.Atoi(address.Port())
	}
	broker.base = broker.URLs["control"] + "/brokers/" + name + "/"
	return broker
}

// stop ends the broker; a fault inside it fails the test.
func stop(t testing.TB, command *exec.Cmd, complaint *bytes.Buffer) {
	command.Process.Signal(syscall.SIGTERM)
	if err := command.Wait(); err != nil {
		t.Errorf("fakebrokers: %v\n%s", err, complaint)
	}
}

// Call tells the broker something; result, if not nil, gets the answer.
func (b *Broker) Call(operation string, given Values, result any) {
	b.t.Helper()
	if given == nil {
		given = Values{}
	}
	body, err := json.Marshal(given)
	if err != nil {
		b.t.Fatalf("%s: %v", operation, err)
	}
	b.read(b.do("POST", operation, body), result)
}

// Ask asks for what an operation only reads.
func (b *Broker) Ask(operation string, given url.Values, result any) {
	b.t.Helper()
	b.read(b.do("GET", operation+"?"+given.Encode(), nil), result)
}

// AddFault adds a fault, or a whole plan, written as JSON; the answer is its name or names.
func (b *Broker) AddFault(fault string) []string {
	b.t.Helper()
	var added struct{ Names []string }
	b.read(b.do("POST", "faults", []byte(fault)), &added)
	return added.Names
}

// Fired is how often a fault took place.
func (b *Broker) Fired(fault string) int {
	b.t.Helper()
	var row struct{ Fired int }
	b.read(b.do("GET", "faults/"+url.PathEscape(fault), nil), &row)
	return row.Fired
}

// CheckFaults fails the test if a fault never took place: then it has not tested what it says.
func (b *Broker) CheckFaults() {
	b.t.Helper()
	var list struct{ Unfired []string }
	b.Ask("faults", nil, &list)
	if len(list.Unfired) > 0 {
		b.t.Errorf("faults that never took place: %s", strings.Join(list.Unfired, ", "))
	}
}

// WaitFor waits until the journal has as many records of a kind, at most for the time that is given.
func (b *Broker) WaitFor(kind string, count int, limit time.Duration) []Record {
	b.t.Helper()
	var found []Record
	b.Call("wait_for", Values{"kind": kind, "count": count, "timeout": limit.Seconds()}, &found)
	return found
}

// Journal has the records that fit: kind, role, tap, connection, since, limit.
func (b *Broker) Journal(wanted url.Values) []Record {
	b.t.Helper()
	var found []Record
	decoder := json.NewDecoder(bytes.NewReader(b.do("GET", "journal?"+wanted.Encode(), nil)))
	for decoder.More() {
		var record Record
		if err := decoder.Decode(&record); err != nil {
			b.t.Fatalf("journal: %v", err)
		}
		found = append(found, record)
	}
	return found
}

// Reset makes the broker as it was right after its start, on the same ports. For between tests.
func (b *Broker) Reset() {
	b.t.Helper()
	b.Call("reset", nil, nil)
}

// do makes a request; whatever is refused ends the test.
func (b *Broker) do(method, path string, body []byte) []byte {
	b.t.Helper()
	request, err := http.NewRequest(method, b.base+path, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		b.t.Fatal(refused(method, path, text))
	}
	return text
}

// refused says where in a request what was wrong.
func refused(method, path string, text []byte) string {
	var why struct {
		Status                 int
		Path, Problem, Journal string
	}
	if json.Unmarshal(text, &why) != nil {
		return fmt.Sprintf("%s %s: %s", method, path, text)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s: %d %s: %s\n%s", method, path, why.Status, why.Path, why.Problem, why.Journal))
}

func (b *Broker) read(text []byte, result any) {
	b.t.Helper()
	if result == nil || len(text) == 0 {
		return
	}
	if err := json.Unmarshal(text, result); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}
