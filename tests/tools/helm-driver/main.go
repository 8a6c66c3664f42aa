// helm-driver answers questions about Helm's behaviour with Helm's own packages.
//
// It reads one JSON object per line on standard input and writes one per line on standard output,
// in the same order. A request is {"id": N, "op": NAME, …}; an answer is {"id": N, …}, with
// "error" when Helm gave an error and "panic" when it panicked. Both are results, not failures of
// the driver. "fault" means that the request itself was wrong. Fields of Go type []byte travel in
// base64, since templates and YAML need not be UTF-8.
//
// The operations are in ops_*.go, one struct per request.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"
)

// answer is what an operation returns; keys are the fields of the line written.
type answer map[string]any

// operations by name. Each decodes its own request.
var operations = map[string]func(raw []byte) (answer, error){}

// register adds an operation whose request is of type R.
func register[R any](name string, run func(R) (answer, error)) {
	operations[name] = func(raw []byte) (answer, error) {
		var request R
		decoder := json.NewDecoder(bytes.NewReader(raw))
		if err := decoder.Decode(&request); err != nil {
			return nil, err
		}
		return run(request)
	}
}

// withError puts Helm's error, if any, into an answer.
func withError(out answer, err error) answer {
	if err != nil {
		out["error"] = []byte(err.Error())
	}
	return out
}

// logged collects what Helm writes through the log package (coalesce warnings, lint notes).
var logged bytes.Buffer

func handle(line []byte) (out answer) {
	var head struct {
		ID int64  `json:"id"`
		Op string `json:"op"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return answer{"fault": err.Error()}
	}
	logged.Reset()
	defer func() {
		if r := recover(); r != nil {
			out = answer{"panic": fmt.Sprint(r)}
		}
		out["id"] = head.ID
		if logged.Len() > 0 {
			out["log"] = append([]byte(nil), logged.Bytes()...)
		}
	}()
	run, ok := operations[head.Op]
	if !ok {
		return answer{"fault": "unknown operation " + head.Op}
	}
	out, err := run(line)
	if err != nil {
		return answer{"fault": err.Error()}
	}
	return out
}

func main() {
	log.SetOutput(&logged)
	log.SetFlags(0)
	register("operations", func(struct{}) (answer, error) {
		names := make([]string, 0, len(operations))
		for name := range operations {
			names = append(names, name)
		}
		sort.Strings(names)
		return answer{"names": names}, nil
	})
	// Standard output belongs to the protocol: whatever Helm prints goes to standard error.
	out := bufio.NewWriter(os.Stdout)
	os.Stdout = os.Stderr
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			encoded, failure := json.Marshal(handle(line))
			if failure != nil {
				encoded = []byte(fmt.Sprintf(`{"fault":%q}`, failure.Error()))
			}
			out.Write(append(encoded, '\n'))
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}
