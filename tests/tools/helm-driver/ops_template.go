package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"text/template"
	_ "unsafe" // for go:linkname

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Helm does not export the function map that its engine hands to templates.
//
//go:linkname engineFuncMap helm.sh/helm/v3/pkg/engine.funcMap
func engineFuncMap() template.FuncMap

//go:linkname engineInitFunMap helm.sh/helm/v3/pkg/engine.Engine.initFunMap
func engineInitFunMap(e engine.Engine, t *template.Template)

type file struct {
	Name string `json:"name"`
	Text []byte `json:"text"`
}

type data struct {
	JSON  []byte          `json:"json"`  // plain JSON: numbers become float64
	YAML  []byte          `json:"yaml"`  // as Helm reads values
	Typed json.RawMessage `json:"typed"` // see untyped
}

func (d data) value() (v any, err error) {
	switch {
	case d.Typed != nil:
		return untyped(d.Typed)
	case d.JSON != nil:
		err = json.Unmarshal(d.JSON, &v)
	case d.YAML != nil:
		err = yaml.Unmarshal(d.YAML, &v)
	}
	return v, err
}

// A raw text/template, without Helm's rendering around it.
type templateRequest struct {
	Main  string `json:"main"`  // name of the template to run, "t" if empty
	Text  []byte `json:"text"`  // its text
	Files []file `json:"files"` // parsed before it, in order
	Data  data   `json:"data"`
	// missingkey: "", "default", "invalid", "zero" or "error"
	MissingKey string `json:"missingkey"`
	// Helm's functions as the engine binds them; else only text/template's own
	HelmFunctions bool   `json:"helm_functions"`
	Left          string `json:"left"`
	Right         string `json:"right"`
}

func parseTemplate(r templateRequest) (*template.Template, error) {
	if r.Main == "" {
		r.Main = "t"
	}
	root := template.New(r.Main).Delims(r.Left, r.Right)
	if r.MissingKey != "" {
		root.Option("missingkey=" + r.MissingKey)
	}
	if r.HelmFunctions {
		engineInitFunMap(engine.Engine{}, root)
	}
	for _, f := range r.Files {
		if _, err := root.New(f.Name).Parse(string(f.Text)); err != nil {
			return nil, err
		}
	}
	return root.Parse(string(r.Text))
}

func runTemplate(r templateRequest) (answer, error) {
	v, err := r.Data.value()
	if err != nil {
		return nil, err
	}
	t, err := parseTemplate(r)
	if err != nil {
		return withError(answer{"stage": "parse"}, err), nil
	}
	var out bytes.Buffer
	err = t.Execute(&out, v)
	return withError(answer{"output": out.Bytes()}, err), nil
}

func runParse(r templateRequest) (answer, error) {
	t, err := parseTemplate(r)
	if err != nil {
		return withError(answer{}, err), nil
	}
	defined := map[string]string{}
	for _, each := range t.Templates() {
		if each.Tree != nil && each.Tree.Root != nil {
			defined[each.Name()] = each.Tree.Root.String()
		}
	}
	return answer{"defined": defined}, nil
}

type releaseRequest struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
	IsUpgrade bool   `json:"is_upgrade"`
}

func (r *releaseRequest) options() chartutil.ReleaseOptions {
	options := chartutil.ReleaseOptions{Name: "release-name", Namespace: "default", Revision: 1, IsInstall: true}
	if r != nil {
		if r.Name != "" {
			options.Name = r.Name
		}
		if r.Namespace != "" {
			options.Namespace = r.Namespace
		}
		if r.Revision != 0 {
			options.Revision = r.Revision
		}
		options.IsUpgrade, options.IsInstall = r.IsUpgrade, !r.IsUpgrade
	}
	return options
}

type capabilitiesRequest struct {
	KubeVersion string   `json:"kube_version"`
	APIVersions []string `json:"api_versions"`
}

func (r *capabilitiesRequest) capabilities() (*chartutil.Capabilities, error) {
	caps := chartutil.DefaultCapabilities.Copy()
	if r == nil {
		return caps, nil
	}
	if r.KubeVersion != "" {
		version, err := chartutil.ParseKubeVersion(r.KubeVersion)
		if err != nil {
			return nil, err
		}
		caps.KubeVersion = *version
	}
	caps.APIVersions = append(append(chartutil.VersionSet{}, caps.APIVersions...), r.APIVersions...)
	return caps, nil
}

// One template rendered by Helm's engine in a chart that holds nothing else: chart "c" 1.2.3,
// template "templates/t.yaml".
type exprRequest struct {
	Template     []byte               `json:"template"`
	Values       []byte               `json:"values"`   // YAML
	Partials     []file               `json:"partials"` // further templates, names below templates/
	Files        []file               `json:"files"`    // for .Files
	Release      *releaseRequest      `json:"release"`
	Capabilities *capabilitiesRequest `json:"capabilities"`
	Strict       bool                 `json:"strict"`
	Lint         bool                 `json:"lint"`
	EnableDNS    bool                 `json:"enable_dns"`
}

const exprChart, exprTemplate = "c", "templates/t.yaml"

func runExpr(r exprRequest) (answer, error) {
	values, err := chartutil.ReadValues(r.Values)
	if err != nil {
		return withError(answer{"stage": "values"}, err), nil
	}
	c := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: exprChart, Version: "1.2.3", AppVersion: "4.5.6", Description: "One template"},
		Values:    map[string]any{},
		Templates: []*chart.File{{Name: exprTemplate, Data: r.Template}},
	}
	for _, f := range r.Partials {
		c.Templates = append(c.Templates, &chart.File{Name: "templates/" + f.Name, Data: f.Text})
	}
	for _, f := range r.Files {
		c.Files = append(c.Files, &chart.File{Name: f.Name, Data: f.Text})
	}
	caps, err := r.Capabilities.capabilities()
	if err != nil {
		return nil, err
	}
	top, err := chartutil.ToRenderValues(c, values, r.Release.options(), caps)
	if err != nil {
		return withError(answer{"stage": "values"}, err), nil
	}
	e := engine.Engine{Strict: r.Strict, LintMode: r.Lint, EnableDNS: r.EnableDNS}
	rendered, err := e.Render(c, top)
	if err != nil {
		return withError(answer{"stage": "render"}, err), nil
	}
	return answer{"output": []byte(rendered[exprChart+"/"+exprTemplate])}, nil
}

// The functions that a chart's template can call, with Go's signatures.
func runFunctions(struct{}) (answer, error) {
	root := template.New("t")
	engineInitFunMap(engine.Engine{}, root)
	signatures := map[string]string{}
	names := []string{}
	for name, function := range engineFuncMap() {
		names = append(names, name)
		signatures[name] = reflect.TypeOf(function).String()
	}
	sort.Strings(names)
	// text/template keeps its own list to itself: ask the parser.
	builtins := []string{}
	for _, name := range strings.Fields("and break call continue define else end eq ge gt html if index js le len lt ne not or print printf println range slice template urlquery with block dot range") {
		if _, err := template.New("t").Parse("{{ " + name + " 1 }}"); err == nil {
			builtins = append(builtins, name)
		}
	}
	sort.Strings(builtins)
	return answer{"names": names, "signatures": signatures, "builtins": builtins}, nil
}

func init() {
	register("template", runTemplate)
	register("parse", runParse)
	register("expr", runExpr)
	register("functions", runFunctions)
	register("call", runCall)
}

// One function of Helm's map called with typed arguments, past the template language.
type callRequest struct {
	Function  string            `json:"function"`
	Arguments []json.RawMessage `json:"arguments"`
}

func runCall(r callRequest) (answer, error) {
	function, ok := engineFuncMap()[r.Function]
	if !ok {
		return nil, fmt.Errorf("no function %q", r.Function)
	}
	f := reflect.ValueOf(function)
	in := make([]reflect.Value, len(r.Arguments))
	for i, raw := range r.Arguments {
		v, err := untyped(raw)
		if err != nil {
			return nil, err
		}
		if v == nil {
			if i >= f.Type().NumIn() {
				return nil, errors.New("nil for a variadic argument")
			}
			in[i] = reflect.Zero(f.Type().In(i))
			continue
		}
		in[i] = reflect.ValueOf(v)
	}
	out := f.Call(in)
	result := answer{"value": typedValue(out[0])}
	if len(out) == 2 && !out[1].IsNil() {
		return withError(result, out[1].Interface().(error)), nil
	}
	return result, nil
}
