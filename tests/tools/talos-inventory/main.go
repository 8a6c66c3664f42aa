// Talos' inventory of bootstrap manifests, for tests.
//
//	talos-inventory fill KUBECONFIG MANIFESTS          what machined does at every start
//	talos-inventory diff KUBECONFIG MANIFESTS POLICY   what a sync would do
//	talos-inventory sync KUBECONFIG MANIFESTS POLICY   a sync: applies, then prunes
//
// MANIFESTS is a JSON list of objects, those of the machine configuration and Talos' own. The
// answer is one line of JSON: the objects by what happens to them, or the error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/siderolabs/go-kubernetes/kubernetes/ssa"
	"github.com/siderolabs/go-kubernetes/kubernetes/ssa/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// The names in pkg/machinery/constants/constants.go of Talos 1.13.
const (
	inventoryNamespace = "kube-system"
	inventoryName      = "talos-bootstrap-manifests-inventory"
	fieldManager       = "talos"
)

type answer map[string][]string

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	result, err := run(ctx, os.Args[1:])
	output := map[string]any{"objects": result}

	if err != nil {
		output["error"] = err.Error()
	}

	if err := json.NewEncoder(os.Stdout).Encode(output); err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (answer, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("usage: fill|diff|sync KUBECONFIG MANIFESTS [POLICY]")
	}

	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return nil, err
	}

	config.QPS, config.Burst = 200, 400

	objects, err := read(args[2])
	if err != nil {
		return nil, err
	}

	if args[0] == "fill" {
		return fill(ctx, config, objects)
	}

	if len(args) != 4 {
		return nil, fmt.Errorf("the policy is missing")
	}

	policy, err := ssa.ParseInventoryPolicy(args[3])
	if err != nil {
		return nil, err
	}

	manager, err := ssa.NewManager(ctx, config, fieldManager, inventoryNamespace, inventoryName)
	if err != nil {
		return nil, err
	}
	defer manager.Close()

	result := answer{}

	switch args[0] {
	case "diff":
		changes, err := manager.Diff(ctx, objects, ssa.DiffOptions{InventoryPolicy: policy})
		for _, change := range changes {
			result.add(string(change.Action), change.ObjMetadata)
		}

		return result.sorted(), err
	case "sync":
		changes, err := manager.Apply(ctx, objects, ssa.ApplyOptions{InventoryPolicy: policy})
		for _, change := range changes {
			result.add(change.Action.String(), change.ObjMetadata)
		}

		return result.sorted(), err
	}

	return nil, fmt.Errorf("unknown command %q", args[0])
}

func read(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var items []map[string]any
	if err := json.Unmarshal(text, &items); err != nil {
		return nil, err
	}

	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		objects = append(objects, &unstructured.Unstructured{Object: item})
	}

	return objects, nil
}

func (a answer) add(action string, of object.ObjMetadata) {
	a[action] = append(a[action], of.String())
}

func (a answer) sorted() answer {
	for _, names := range a {
		slices.Sort(names)
	}

	return a
}

// fill does what ManifestApplyController does (internal/app/machined/pkg/controllers/k8s of Talos
// 1.13): an object that is listed is left alone, one that exists is listed, any other is created
// with the annotation and listed; then the inventory is written whole, whatever it was meanwhile.
func fill(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) (answer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	objectClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))

	inventory, err := ssa.GetInventory(ctx, client, inventoryNamespace, inventoryName)
	if err != nil {
		return nil, err
	}

	listed := inventory.Get()
	result := answer{}

	for _, item := range objects {
		reference, err := object.RuntimeToObjMeta(item)
		if err != nil {
			return nil, err
		}

		if listed.Contains(reference) {
			result.add("listed", reference)

			continue
		}

		created, err := exists(ctx, mapper, objectClient, item)
		if err != nil {
			return result, err
		}

		listed = listed.Union(object.ObjMetadataSet{reference})
		result.add(map[bool]string{true: "created", false: "found"}[created], reference)
	}

	inventory.Update(listed)

	return result.sorted(), inventory.Write(ctx)
}

// exists makes sure that an object is there, and tells whether it created it.
func exists(ctx context.Context, mapper meta.RESTMapper, client dynamic.Interface, item *unstructured.Unstructured) (bool, error) {
	kind := item.GroupVersionKind()

	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}

	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = client.Resource(mapping.Resource).Namespace(item.GetNamespace())
	}

	if _, err = resource.Get(ctx, item.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return false, err
	}

	annotations := item.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[ssa.InventoryAnnotationKey] = inventoryName
	item.SetAnnotations(annotations)

	_, err = resource.Apply(ctx, item.GetName(), item, metav1.ApplyOptions{FieldManager: fieldManager})

	return true, err
}
