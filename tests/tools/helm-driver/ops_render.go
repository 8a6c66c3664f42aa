package main

import (
	"errors"
	"io"
	"sort"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/getter"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// A whole chart: its rendered files as the engine gives them, and the release that an install
// without a cluster would write.
type renderRequest struct {
	chartRequest
	Values       []byte               `json:"values"` // YAML, below the flags
	ValueFiles   []string             `json:"value_files"`
	Set          []string             `json:"set"`
	SetString    []string             `json:"set_string"`
	SetFile      []string             `json:"set_file"`
	SetJSON      []string             `json:"set_json"`
	SetLiteral   []string             `json:"set_literal"`
	Release      *releaseRequest      `json:"release"`
	Capabilities *capabilitiesRequest `json:"capabilities"`
	Strict       bool                 `json:"strict"`
	IncludeCRDs  bool                 `json:"include_crds"`
	SubNotes     bool                 `json:"subchart_notes"`
	SkipSchema   bool                 `json:"skip_schema"`
	EnableDNS    bool                 `json:"enable_dns"`
	// Only the engine's files, without the release around them.
	FilesOnly bool `json:"files_only"`
}

func (r renderRequest) values() (map[string]any, error) {
	options := values.Options{
		ValueFiles: r.ValueFiles, Values: r.Set, StringValues: r.SetString, FileValues: r.SetFile,
		JSONValues: r.SetJSON, LiteralValues: r.SetLiteral,
	}
	base, err := chartutil.ReadValues(r.Values)
	if err != nil {
		return nil, err
	}
	flags, err := options.MergeValues(getter.All(cli.New()))
	if err != nil {
		return nil, err
	}
	return chartutil.MergeTables(flags, base), nil
}

func (r renderRequest) files() (map[string]string, error) {
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	given, err := r.values()
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, given); err != nil {
		return nil, err
	}
	caps, err := r.Capabilities.capabilities()
	if err != nil {
		return nil, err
	}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(c, given, r.Release.options(), caps, r.SkipSchema)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: r.Strict, EnableDNS: r.EnableDNS}.Render(c, top)
}

func runRender(r renderRequest) (answer, error) {
	rendered, err := r.files()
	out := withError(answer{}, err)
	if rendered != nil {
		files := map[string][]byte{}
		for name, text := range rendered {
			files[name] = []byte(text)
		}
		out["files"] = files
	}
	if r.FilesOnly || err != nil {
		return out, nil
	}
	// The first pass changed chart and values in place, so both are read again.
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	given, err := r.values()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(&action.Configuration{
		Releases:   storage.Init(driver.NewMemory()),
		KubeClient: &kubefake.PrintingKubeClient{Out: io.Discard},
		Log:        func(string, ...any) {},
	})
	options := r.Release.options()
	install.ReleaseName, install.Namespace, install.IsUpgrade = options.Name, options.Namespace, options.IsUpgrade
	install.DryRun, install.DryRunOption, install.ClientOnly, install.Replace = true, "client", true, true
	install.IncludeCRDs, install.SubNotes = r.IncludeCRDs, r.SubNotes
	install.SkipSchemaValidation, install.EnableDNS = r.SkipSchema, r.EnableDNS
	if r.Capabilities != nil {
		install.APIVersions = r.Capabilities.APIVersions
		if r.Capabilities.KubeVersion != "" {
			if install.KubeVersion, err = chartutil.ParseKubeVersion(r.Capabilities.KubeVersion); err != nil {
				return nil, err
			}
		}
	}
	release, err := install.Run(c, given)
	withError(out, err)
	if release == nil {
		if err == nil {
			return nil, errors.New("no release and no error")
		}
		return out, nil
	}
	hooks := []answer{}
	for _, h := range release.Hooks {
		events := []string{}
		for _, event := range h.Events {
			events = append(events, string(event))
		}
		policies := []string{}
		for _, policy := range h.DeletePolicies {
			policies = append(policies, string(policy))
		}
		sort.Strings(policies)
		hooks = append(hooks, answer{
			"name": h.Name, "kind": h.Kind, "path": h.Path, "manifest": []byte(h.Manifest),
			"events": events, "weight": h.Weight, "delete_policies": policies,
		})
	}
	out["hooks"] = hooks
	out["manifest"] = []byte(release.Manifest)
	out["notes"] = []byte(release.Info.Notes)
	return out, nil
}

func init() {
	register("render", runRender)
}
