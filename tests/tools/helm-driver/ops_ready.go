package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"helm.sh/helm/v3/pkg/kube"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	restfake "k8s.io/client-go/rest/fake"
)

// readyRequest asks whether the first object is ready on a cluster that holds all of them.
type readyRequest struct {
	Objects []map[string]any `json:"objects"`
}

// ready answers "ready", "not ready: REASON" with the last line of the log, "not ready" when there
// is none, or "error: TEXT".
func ready(r readyRequest) (answer, error) {
	if len(r.Objects) == 0 {
		return nil, errors.New("no object")
	}
	var held []runtime.Object
	for _, object := range r.Objects {
		kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
		if kind.Group == apiextensions.GroupName {
			continue // read by its own address, see below
		}
		kind.Version = "v1" // what the checker reads
		typed, err := scheme.Scheme.New(kind)
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
			return nil, err
		}
		held = append(held, typed)
	}
	first := &unstructured.Unstructured{Object: r.Objects[0]}
	body, err := json.Marshal(r.Objects[0])
	if err != nil {
		return nil, err
	}
	kind, scope := first.GroupVersionKind(), meta.RESTScopeNamespace
	if first.GetNamespace() == "" {
		scope = meta.RESTScopeRoot
	}
	info := &resource.Info{
		Client: &restfake.RESTClient{
			NegotiatedSerializer: resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer,
			GroupVersion:         kind.GroupVersion(),
			Resp: &http.Response{
				StatusCode: http.StatusOK,
				Header:     http.Header{"Content-Type": []string{"application/json"}},
				Body:       io.NopCloser(bytes.NewReader(body)),
			},
		},
		Mapping: &meta.RESTMapping{
			Resource:         schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: "things"},
			GroupVersionKind: kind,
			Scope:            scope,
		},
		Namespace: first.GetNamespace(),
		Name:      first.GetName(),
		Object:    first,
	}
	last := ""
	listen := func(format string, arguments ...any) { last = fmt.Sprintf(format, arguments...) }
	checker := kube.NewReadyChecker(fake.NewClientset(held...), listen, kube.PausedAsReady(true), kube.CheckJobs(true))
	is, err := checker.IsReady(context.Background(), info)
	switch {
	case err != nil:
		return answer{"says": "error: " + err.Error()}, nil
	case is:
		return answer{"says": "ready"}, nil
	case last == "":
		return answer{"says": "not ready"}, nil
	default:
		return answer{"says": "not ready: " + last}, nil
	}
}

func init() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	register("ready", ready)
}
