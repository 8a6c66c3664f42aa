// chart-peer answers requests about charts, values and manifests with Helm's own packages.
//
// It reads one JSON object per line (Req) and writes one per line: "err" is Helm's error text or
// null, "ok" the result, "log" what Helm wrote to its log, "panic" a panic. Values keep their Go
// types: ["i", "1"] is an int64, ["f", "1"] a float64, ["l", ...] a list. The cases under
// helm-rs/tests/chart_cases were answered by it; refresh.py asks for them again.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/ignore"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

type Req struct {
	Op    string            `json:"op"`
	Kind  string            `json:"kind"`
	Input string            `json:"input"`
	Path  string            `json:"path"`
	Base  any               `json:"base"`
	Files map[string]string `json:"files"`
	Order string            `json:"order"`
	Dir   bool              `json:"dir"`
	Skip  bool              `json:"skip"`
	List  []string          `json:"list"`
	Opts  values.Options    `json:"opts"`
}

func untag(v any) any {
	switch t := v.(type) {
	case []any:
		if len(t) == 0 {
			return []any{}
		}
		switch t[0].(string) {
		case "f":
			f, _ := strconv.ParseFloat(t[1].(string), 64)
			return f
		case "i":
			f, _ := strconv.ParseInt(t[1].(string), 10, 64)
			return f
		case "l":
			out := []any{}
			for _, x := range t[1:] {
				out = append(out, untag(x))
			}
			return out
		}
		return nil
	case map[string]any:
		out := map[string]any{}
		for k, x := range t {
			out[k] = untag(x)
		}
		return out
	}
	return v
}

func tag(v any) any {
	switch t := v.(type) {
	case float64:
		return []any{"f", strconv.FormatFloat(t, 'g', -1, 64)}
	case int64:
		return []any{"i", strconv.FormatInt(t, 10)}
	case int:
		return []any{"i", strconv.FormatInt(int64(t), 10)}
	case []any:
		out := []any{"l"}
		for _, x := range t {
			out = append(out, tag(x))
		}
		return out
	case map[string]any:
		if t == nil {
			return nil
		}
		out := map[string]any{}
		for k, x := range t {
			out[k] = tag(x)
		}
		return out
	case chartutil.Values:
		return tag(map[string]any(t))
	case map[string]string:
		out := map[string]any{}
		for k, x := range t {
			out[k] = x
		}
		return out
	case nil, string, bool:
		return t
	}
	return fmt.Sprintf("!!%T", v)
}

func files(fs []*chart.File) any {
	out := []any{}
	for _, f := range fs {
		out = append(out, []any{f.Name, string(f.Data)})
	}
	return out
}

func dumpMeta(m *chart.Metadata) any {
	if m == nil {
		return nil
	}
	b, _ := json.Marshal(m)
	var v any
	json.Unmarshal(b, &v)
	return v
}

func dump(c *chart.Chart, sorted bool) any {
	if c == nil {
		return nil
	}
	deps := c.Dependencies()
	if sorted {
		deps = append([]*chart.Chart{}, deps...)
		sort.SliceStable(deps, func(i, j int) bool { return deps[i].Name() < deps[j].Name() })
	}
	ds := []any{}
	for _, d := range deps {
		ds = append(ds, dump(d, sorted))
	}
	var lock any
	if c.Lock != nil {
		b, _ := json.Marshal(c.Lock)
		json.Unmarshal(b, &lock)
	}
	crds := []any{}
	for _, x := range c.CRDObjects() {
		crds = append(crds, x.Filename)
	}
	out := map[string]any{"metadata": dumpMeta(c.Metadata), "raw": files(c.Raw), "templates": files(c.Templates), "files": files(c.Files), "values": tag(c.Values), "schema": nil, "lock": lock, "deps": ds, "path": "", "full": "", "crds": crds}
	if c.Metadata != nil {
		out["path"] = c.ChartPath()
		out["full"] = c.ChartFullPath()
	}
	if c.Schema != nil {
		out["schema"] = string(c.Schema)
	}
	return out
}

func load(r Req) (*chart.Chart, error) {
	if r.Path != "" {
		return loader.Load(r.Path)
	}
	fs := []*loader.BufferedFile{}
	for i := 0; i+1 < len(r.List); i += 2 {
		fs = append(fs, &loader.BufferedFile{Name: r.List[i], Data: []byte(r.List[i+1])})
	}
	return loader.LoadFiles(fs)
}

type fi struct {
	name string
	dir  bool
}

func (f fi) Name() string { return f.name }
func (f fi) Size() int64  { return 0 }
func (f fi) Mode() os.FileMode {
	if f.dir {
		return os.ModeDir
	}
	return 0
}
func (f fi) ModTime() (t time.Time) { return }
func (f fi) IsDir() bool            { return f.dir }
func (f fi) Sys() any               { return nil }

func errs(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

func handle(r Req) (res map[string]any) {
	var logbuf bytes.Buffer
	log.SetFlags(log.Lshortfile)
	log.SetOutput(&logbuf)
	res = map[string]any{}
	defer func() {
		if e := recover(); e != nil {
			res["panic"] = fmt.Sprint(e)
		}
		res["log"] = logbuf.String()
	}()
	switch r.Op {
	case "strvals":
		base, _ := untag(r.Base).(map[string]any)
		if base == nil {
			base = map[string]any{}
		}
		var err error
		switch r.Kind {
		case "set":
			err = strvals.ParseInto(r.Input, base)
		case "string":
			err = strvals.ParseIntoString(r.Input, base)
		case "json":
			err = strvals.ParseJSON(r.Input, base)
		case "literal":
			err = strvals.ParseLiteralInto(r.Input, base)
		case "file":
			err = strvals.ParseIntoFile(r.Input, base, func(rs []rune) (any, error) {
				if strings.HasPrefix(string(rs), "bad") {
					return nil, errors.New("open " + string(rs) + ": no such file or directory")
				}
				return "<" + string(rs) + ">", nil
			})
		}
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = tag(base)
		}
	case "options":
		dir, _ := os.MkdirTemp("", "chartpeer")
		defer os.RemoveAll(dir)
		os.Chdir(dir)
		for n, t := range r.Files {
			os.WriteFile(n, []byte(t), 0644)
		}
		v, err := r.Opts.MergeValues(getter.Providers{})
		os.Chdir("/")
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = tag(v)
		}
	case "load":
		c, err := loader.Load(r.Path)
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = dump(c, true)
		}
	case "loaddir":
		dir, _ := os.MkdirTemp("", "chartpeer")
		defer os.RemoveAll(dir)
		root := filepath.Join(dir, "chart")
		os.Mkdir(root, 0755)
		for i := 0; i+2 < len(r.List); i += 3 {
			name := filepath.Join(root, r.List[i])
			os.MkdirAll(filepath.Dir(name), 0755)
			content := strings.ReplaceAll(r.List[i+2], "$DIR", dir)
			switch r.List[i+1] {
			case "file":
				os.WriteFile(name, []byte(content), 0644)
			case "link":
				os.Symlink(content, name)
			case "dir":
				os.MkdirAll(name, 0755)
			case "big":
				n, _ := strconv.Atoi(content)
				os.WriteFile(name, bytes.Repeat([]byte("x"), n), 0644)
			}
		}
		c, err := loader.Load(filepath.Join(root, r.Path))
		if err != nil {
			res["err"] = strings.ReplaceAll(err.Error(), dir, "$DIR")
		} else {
			res["err"] = nil
		}
		if err == nil {
			res["ok"] = dump(c, true)
		}
		l := strings.ReplaceAll(logbuf.String(), dir, "$DIR")
		logbuf.Reset()
		logbuf.WriteString(l)
	case "archive":
		data, _ := base64.StdEncoding.DecodeString(r.Input)
		c, err := loader.LoadArchive(bytes.NewReader(data))
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = dump(c, true)
		}
	case "archivefile":
		data, _ := base64.StdEncoding.DecodeString(r.Input)
		dir, _ := os.MkdirTemp("", "chartpeer")
		defer os.RemoveAll(dir)
		name := filepath.Join(dir, r.Path)
		os.WriteFile(name, data, 0644)
		c, err := loader.Load(name)
		if err != nil {
			res["err"] = strings.ReplaceAll(err.Error(), dir, "$DIR")
		} else {
			res["err"] = nil
		}
		if err == nil {
			res["ok"] = dump(c, true)
		}
	case "mktgz":
		var f bytes.Buffer
		z := gzip.NewWriter(&f)
		t := tar.NewWriter(z)
		for i := 0; i+2 < len(r.List); i += 3 {
			h := &tar.Header{Name: r.List[i], Mode: 0644, Size: int64(len(r.List[i+2])), Typeflag: r.List[i+1][0]}
			if h.Typeflag == 'g' {
				h.Size = 0
				h.Mode = 0
				h.Name = ""
				h.PAXRecords = map[string]string{"comment": r.List[i+2]}
			} else if h.Typeflag != '0' {
				h.Size = 0
				h.Linkname = r.List[i+2]
			}
			if err := t.WriteHeader(h); err != nil {
				res["err"] = errs(err)
			}
			if h.Typeflag == '0' {
				t.Write([]byte(r.List[i+2]))
			}
		}
		t.Close()
		z.Close()
		res["ok"] = base64.StdEncoding.EncodeToString(f.Bytes())
	case "loadfiles":
		fs := []*loader.BufferedFile{}
		for i := 0; i+1 < len(r.List); i += 2 {
			fs = append(fs, &loader.BufferedFile{Name: r.List[i], Data: []byte(r.List[i+1])})
		}
		c, err := loader.LoadFiles(fs)
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = dump(c, true)
		}
	case "process", "render":
		c, err := load(r)
		if err != nil {
			res["err"] = errs(err)
			return
		}
		logbuf.Reset()
		vals, _ := untag(r.Base).(map[string]any)
		if r.Kind == "plain" {
			err = chartutil.ProcessDependencies(c, vals)
		} else {
			err = chartutil.ProcessDependenciesWithMerge(c, vals)
		}
		res["err"] = errs(err)
		if err != nil {
			return
		}
		if r.Op == "process" {
			res["ok"] = dump(c, false)
			return
		}
		v, err := chartutil.ToRenderValuesWithSchemaValidation(c, vals, chartutil.ReleaseOptions{}, chartutil.DefaultCapabilities, r.Skip)
		res["err"] = errs(err)
		if err == nil {
			x, _ := v["Values"].(chartutil.Values)
			res["ok"] = tag(x)
		}
	case "coalesce":
		c, err := load(r)
		if err != nil {
			res["err"] = errs(err)
			return
		}
		vals, _ := untag(r.Base).(map[string]any)
		var v chartutil.Values
		if r.Kind == "merge" {
			v, err = chartutil.MergeValues(c, vals)
		} else {
			v, err = chartutil.CoalesceValues(c, vals)
		}
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = tag(v)
		}
	case "schema":
		vals, _ := untag(r.Base).(map[string]any)
		res["err"] = errs(chartutil.ValidateAgainstSingleSchema(vals, []byte(r.Input)))
	case "ignore":
		rules, err := ignore.Parse(strings.NewReader(r.Input))
		res["err"] = errs(err)
		if err == nil {
			rules.AddDefaults()
			res["ok"] = rules.Ignore(r.Path, fi{r.Path, r.Dir})
		}
	case "sort":
		ord := releaseutil.InstallOrder
		if r.Order == "uninstall" {
			ord = releaseutil.UninstallOrder
		}
		h, m, err := releaseutil.SortManifests(r.Files, nil, ord)
		res["err"] = errs(err)
		hs, ms := []any{}, []any{}
		for _, x := range h {
			b, _ := json.Marshal(x)
			var v map[string]any
			json.Unmarshal(b, &v)
			delete(v, "last_run")
			if v["events"] == nil {
				v["events"] = []any{}
			}
			hs = append(hs, v)
		}
		for _, x := range m {
			mn := ""
			if x.Head.Metadata != nil {
				mn = x.Head.Metadata.Name
			}
			ms = append(ms, []any{x.Name, x.Content, x.Head.Version, x.Head.Kind, mn})
		}
		res["hooks"], res["manifests"] = hs, ms
	case "split":
		m := releaseutil.SplitManifests(r.Input)
		keys := []string{}
		for k := range m {
			keys = append(keys, k)
		}
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		out := []any{}
		for _, k := range keys {
			out = append(out, m[k])
		}
		res["ok"] = out
	case "kube":
		kv, err := chartutil.ParseKubeVersion(r.Input)
		res["err"] = errs(err)
		if err == nil {
			res["ok"] = []any{kv.Version, kv.Major, kv.Minor}
		}
	case "release":
		res["err"] = errs(chartutil.ValidateReleaseName(r.Input))
	case "metaname":
		res["err"] = errs(chartutil.ValidateMetadataName(r.Input))
	case "compat":
		res["ok"] = chartutil.IsCompatibleRange(r.Input, r.Path)
	case "metadata":
		m := new(chart.Metadata)
		err := yaml.Unmarshal([]byte(r.Input), m)
		res["err"] = errs(err)
		if err == nil {
			res["err"] = errs(m.Validate())
			res["ok"] = dumpMeta(m)
		}
	case "lock":
		m := new(chart.Lock)
		err := yaml.Unmarshal([]byte(r.Input), &m)
		res["err"] = errs(err)
		res["ok"] = m
	case "match":
		ok, err := filepath.Match(r.Input, r.Path)
		res["err"] = errs(err)
		res["ok"] = ok
	case "path":
		res["ok"] = []any{path.Clean(r.Input), path.Base(r.Input), path.Ext(r.Input), path.Join(r.Input, r.Path)}
	case "quote":
		res["ok"] = []any{strconv.Quote(r.Input), fmt.Sprintf("%q", []rune(r.Input))}
	case "printv":
		res["ok"] = []any{fmt.Sprintf("%v", untag(r.Base)), fmt.Sprintf("%t", untag(r.Base)), fmt.Sprintf("%T", untag(r.Base))}
	case "apis":
		res["ok"] = chartutil.DefaultVersionSet
	case "sanitize":
		res["ok"] = strings.Map(func(c rune) rune {
			if unicode.IsSpace(c) {
				return ' '
			}
			if unicode.IsPrint(c) {
				return c
			}
			return -1
		}, r.Input)
	default:
		res["err"] = "unknown op"
	}
	return
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var r Req
			if e := json.Unmarshal(line, &r); e != nil {
				fmt.Fprintf(out, "{\"err\":%q}\n", e.Error())
				out.Flush()
				continue
			}
			res := handle(r)
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			enc.Encode(res)
			out.Write(buf.Bytes())
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}
