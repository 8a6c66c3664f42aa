// patch-peer answers questions about patches with the libraries that Helm's kube client calls.
//
// Without arguments it reads one JSON object per line (request) and writes one per line. Documents
// travel as JSON text, so that numbers keep their spelling. `patch-peer table` prints the table of
// Go types that helm-rs/patch embeds (see table.go) and ends.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	jsonpatch "github.com/evanphx/json-patch"
	patchv4 "gopkg.in/evanphx/json-patch.v4"
	"helm.sh/helm/v3/pkg/kube"
	apiextv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
)

// request asks one question. Op names it; the other fields are what it needs.
type request struct {
	Op         string `json:"op"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Original   string `json:"original"`
	Modified   string `json:"modified"`
	Current    string `json:"current"`
	Patch      string `json:"patch"`
	// ThreeWay is Helm's switch: three-way merge of what has no Go type.
	ThreeWay bool `json:"threeWay"`
	// Times asks that often: Go walks maps in random order, and some answers depend on it.
	Times int `json:"times"`
}

// answer holds the patch, its type where Helm chose it, the object after applying it, or what went
// wrong in either step.
type answer struct {
	Type        string `json:"type,omitempty"`
	Patch       string `json:"patch,omitempty"`
	Error       string `json:"error,omitempty"`
	Panic       string `json:"panic,omitempty"`
	Result      string `json:"result,omitempty"`
	ResultError string `json:"resultError,omitempty"`
	ResultPanic string `json:"resultPanic,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "table" {
		if err := printTable(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		encoder.Encode(distinct(asked))
		out.Flush()
	}
}

// distinct collects the different answers to one question, in order of appearance.
func distinct(asked request) []answer {
	answers := []answer{}
	for i := 0; i < max(asked.Times, 1); i++ {
		got := ask(asked)
		known := false
		for _, a := range answers {
			known = known || a == got
		}
		if !known {
			answers = append(answers, got)
		}
	}
	return answers
}

// ask makes the patch (unless the request brings it) and applies it to the current object.
func ask(asked request) (a answer) {
	a.Type = typeOf(asked)
	if asked.Op == "apply" {
		a.Patch = asked.Patch
	} else {
		a.Patch, a.Error, a.Panic = try(func() ([]byte, error) { return create(asked, &a) })
		if a.Error != "" || a.Panic != "" || asked.Current == "" {
			return a
		}
	}
	a.Result, a.ResultError, a.ResultPanic = try(func() ([]byte, error) { return apply(asked, a) })
	return a
}

func try(f func() ([]byte, error)) (text, failure, panicked string) {
	defer func() {
		if r := recover(); r != nil {
			panicked = fmt.Sprint(r)
		}
	}()
	data, err := f()
	if err != nil {
		return "", err.Error(), ""
	}
	return string(data), "", ""
}

func gvk(asked request) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind)
}

func typeOf(asked request) string {
	if _, err := nativeScheme.New(gvk(asked)); err == nil {
		return "strategic"
	}
	return "merge"
}

func patchMeta(asked request) (strategicpatch.LookupPatchMeta, error) {
	object, err := nativeScheme.New(gvk(asked))
	if err != nil {
		return nil, err
	}
	return strategicpatch.NewPatchMetaFromStruct(object)
}

var preconditions = []mergepatch.PreconditionFunc{
	mergepatch.RequireKeyUnchanged("apiVersion"),
	mergepatch.RequireKeyUnchanged("kind"),
	mergepatch.RequireMetadataKeyUnchanged("name"),
}

func create(asked request, a *answer) ([]byte, error) {
	original, modified, current := []byte(asked.Original), []byte(asked.Modified), []byte(asked.Current)
	switch asked.Op {
	case "two-way":
		meta, err := patchMeta(asked)
		if err != nil {
			return nil, err
		}
		return strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(original, modified, meta)
	case "three-way":
		meta, err := patchMeta(asked)
		if err != nil {
			return nil, err
		}
		return strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
	case "merge-two-way":
		a.Type = "merge"
		return jsonpatch.CreateMergePatch(original, modified)
	case "merge-three-way":
		a.Type = "merge"
		return jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current, preconditions...)
	case "helm":
		return helm(asked, a)
	}
	return nil, errors.New("unknown operation " + asked.Op)
}

// helm decides as createPatch in Helm's pkg/kube/client.go does, for a rendered object that the
// resource builder read as unstructured.
func helm(asked request, a *answer) ([]byte, error) {
	target := map[string]any{}
	if err := utiljson.Unmarshal([]byte(asked.Modified), &target); err != nil {
		return nil, err
	}
	versioned := kube.AsVersioned(&resource.Info{
		Object:  &unstructured.Unstructured{Object: target},
		Mapping: &meta.RESTMapping{GroupVersionKind: gvk(asked)},
	})
	original, modified, current := []byte(asked.Original), []byte(asked.Modified), []byte(asked.Current)
	_, untyped := versioned.(runtime.Unstructured)
	_, definition := versioned.(*apiextv1beta1.CustomResourceDefinition)
	if untyped || definition {
		a.Type = "merge"
		if !asked.ThreeWay {
			return jsonpatch.CreateMergePatch(original, modified)
		}
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current, preconditions...)
		if err != nil && mergepatch.IsPreconditionFailed(err) {
			err = fmt.Errorf("%w: at least one field was changed: apiVersion, kind or name", err)
		}
		return patch, err
	}
	a.Type = "strategic"
	meta, err := strategicpatch.NewPatchMetaFromStruct(versioned)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateThreeWayMergePatch(original, modified, current, meta, true)
}

// apply does what the API server does with the patch, without defaulting and validation.
func apply(asked request, a answer) ([]byte, error) {
	if a.Type == "merge" {
		data, err := patchv4.MergePatch([]byte(asked.Current), []byte(a.Patch))
		if err != nil {
			return nil, err
		}
		// json-patch keeps the spelling of numbers; the server decodes what comes out.
		merged := map[string]any{}
		if err := utiljson.Unmarshal(data, &merged); err != nil {
			return nil, err
		}
		return json.Marshal(merged)
	}
	meta, err := patchMeta(asked)
	if err != nil {
		return nil, err
	}
	current, patch := map[string]any{}, map[string]any{}
	if err := utiljson.Unmarshal([]byte(asked.Current), &current); err != nil {
		return nil, mergepatch.ErrBadJSONDoc
	}
	if err := utiljson.Unmarshal([]byte(a.Patch), &patch); err != nil {
		return nil, mergepatch.ErrBadJSONDoc
	}
	// The server's object comes from ToUnstructured, whose lists have no room to grow; appending to
	// a decoded list writes into memory that other lists see.
	current = runtime.DeepCopyJSON(current)
	merged, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(current, patch, meta)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}
