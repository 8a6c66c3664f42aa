package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// decodeRequest reads YAML or JSON into one of the targets that Helm uses.
type decodeRequest struct {
	Text []byte `json:"text"`
	// "any", "map" (fromYaml), "array" (fromYamlArray), "values" (values.yaml), "strict"
	Target string `json:"target"`
}

func decode(r decodeRequest, unmarshal func([]byte, any) error) (answer, error) {
	switch r.Target {
	case "", "any":
		var v any
		err := unmarshal(r.Text, &v)
		return withError(answer{"value": typed(v)}, err), nil
	case "map":
		v := map[string]any{}
		err := unmarshal(r.Text, &v)
		return withError(answer{"value": typed(v)}, err), nil
	case "array":
		v := []any{}
		err := unmarshal(r.Text, &v)
		return withError(answer{"value": typed(v)}, err), nil
	case "values":
		v, err := chartutil.ReadValues(r.Text)
		return withError(answer{"value": typed(map[string]any(v))}, err), nil
	case "strict":
		var v any
		err := yaml.UnmarshalStrict(r.Text, &v)
		return withError(answer{"value": typed(v)}, err), nil
	}
	return nil, errors.New("unknown target " + r.Target)
}

// Encoding goes through the very functions that templates call, where there is one.
func encodeWith(name string) func(data) (answer, error) {
	return func(d data) (answer, error) {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		encode := engineFuncMap()[name].(func(any) string)
		out := answer{"output": []byte(encode(v))}
		// The functions swallow errors.
		switch name {
		case "toYaml":
			_, err = yaml.Marshal(v)
		case "toJson":
			_, err = json.Marshal(v)
		}
		return withError(out, err), nil
	}
}

// A chart on disk (folder or archive), or its files in the request.
type chartRequest struct {
	Path  string `json:"path"`
	Files []file `json:"chart"`
}

func (r chartRequest) load() (*chart.Chart, error) {
	if r.Path != "" {
		return loader.Load(r.Path)
	}
	buffered := []*loader.BufferedFile{}
	for _, f := range r.Files {
		buffered = append(buffered, &loader.BufferedFile{Name: f.Name, Data: f.Text})
	}
	return loader.LoadFiles(buffered)
}

type coalesceRequest struct {
	chartRequest
	Values []byte `json:"values"`
	// Merge keeps nulls (chartutil.MergeValues); Dependencies runs ProcessDependencies first.
	Merge        bool `json:"merge"`
	Dependencies bool `json:"dependencies"`
}

func runCoalesce(r coalesceRequest) (answer, error) {
	c, err := r.load()
	if err != nil {
		return withError(answer{"stage": "load"}, err), nil
	}
	values, err := chartutil.ReadValues(r.Values)
	if err != nil {
		return withError(answer{"stage": "values"}, err), nil
	}
	if r.Dependencies {
		if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
			return withError(answer{"stage": "dependencies"}, err), nil
		}
	}
	run := chartutil.CoalesceValues
	if r.Merge {
		run = chartutil.MergeValues
	}
	out, err := run(c, values)
	return withError(answer{"value": typed(map[string]any(out))}, err), nil
}

type strvalsRequest struct {
	// "set", "string", "json", "literal", "file"; "yaml" is ToYAML
	Kind string `json:"kind"`
	Text []byte `json:"text"`
	Dest []byte `json:"dest"` // YAML to set into
}

func runStrvals(r strvalsRequest) (answer, error) {
	dest := map[string]any{}
	if len(r.Dest) > 0 {
		if err := yaml.Unmarshal(r.Dest, &dest); err != nil {
			return nil, err
		}
	}
	var err error
	text := string(r.Text)
	switch r.Kind {
	case "set":
		err = strvals.ParseInto(text, dest)
	case "string":
		err = strvals.ParseIntoString(text, dest)
	case "json":
		err = strvals.ParseJSON(text, dest)
	case "literal":
		err = strvals.ParseLiteralInto(text, dest)
	case "file":
		err = strvals.ParseIntoFile(text, dest, func(name []rune) (any, error) {
			content, err := os.ReadFile(string(name))
			return string(content), err
		})
	case "yaml":
		out, err := strvals.ToYAML(text)
		return withError(answer{"output": []byte(out)}, err), nil
	default:
		return nil, errors.New("unknown kind " + r.Kind)
	}
	return withError(answer{"value": typed(dest)}, err), nil
}

type semverRequest struct {
	Constraint string `json:"constraint"`
	Version    string `json:"version"`
}

// runSemver answers the two halves apart: what the version parses to, and whether it satisfies.
func runSemver(r semverRequest) (answer, error) {
	out := answer{}
	v, err := semver.NewVersion(r.Version)
	if err != nil {
		out["version_error"] = err.Error()
	} else {
		out["version"] = v.String()
	}
	if r.Constraint == "" {
		return out, nil
	}
	c, err := semver.NewConstraint(r.Constraint)
	if err != nil {
		out["constraint_error"] = err.Error()
		return out, nil
	}
	out["constraint"] = c.String()
	if v != nil {
		ok, reasons := c.Validate(v)
		out["satisfied"] = ok
		texts := []string{}
		for _, reason := range reasons {
			texts = append(texts, reason.Error())
		}
		out["reasons"] = texts
	}
	return out, nil
}

type schemaRequest struct {
	Schema []byte `json:"schema"`
	Values []byte `json:"values"`
}

func runSchema(r schemaRequest) (answer, error) {
	values, err := chartutil.ReadValues(r.Values)
	if err != nil {
		return nil, err
	}
	return withError(answer{}, chartutil.ValidateAgainstSingleSchema(values, r.Schema)), nil
}

func runVersion(struct{}) (answer, error) {
	modules := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			modules[module.Path] = module.Version
		}
	}
	return answer{"capabilities": fmt.Sprintf("%+v", *chartutil.DefaultCapabilities), "modules": modules}, nil
}

func init() {
	register("yaml_decode", func(r decodeRequest) (answer, error) {
		return decode(r, func(text []byte, v any) error { return yaml.Unmarshal(text, v) })
	})
	register("json_decode", func(r decodeRequest) (answer, error) { return decode(r, json.Unmarshal) })
	register("yaml_encode", encodeWith("toYaml"))
	register("yaml_pretty", encodeWith("toYamlPretty"))
	register("json_encode", encodeWith("toJson"))
	register("toml_encode", encodeWith("toToml"))
	register("coalesce", runCoalesce)
	register("strvals", runStrvals)
	register("semver", runSemver)
	register("schema", runSchema)
	register("version", runVersion)
}
