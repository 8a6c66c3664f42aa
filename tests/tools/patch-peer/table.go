package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	forkedjson "k8s.io/apimachinery/third_party/forked/golang/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// nativeScheme holds the types that Helm knows: pkg/kube/converter.go, kubernetesNativeScheme.
var nativeScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	must(scheme.AddToScheme(s))
	must(apiextensionsv1beta1.AddToScheme(s))
	must(apiextensionsv1.AddToScheme(s))
	return s
}()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

// printTable writes every kind that a manifest can have with the Go types below it.
//
//	T NAME[!] FIELD=TYPE[,STRATEGY…][/MERGEKEY] …   a struct; its number is its place among T lines;
//	                                                ! when it reads JSON with code of its own
//	K APIVERSION KIND NUMBER                         a kind and the struct it is
//
// A TYPE is a letter (see scalars), *TYPE, [TYPE, {TYPE (a map to it) or #NUMBER. Types that are equal
// in name and content, as those of several API versions often are, are written once.
func printTable(out io.Writer) error {
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	t := &table{number: map[reflect.Type]int{}}
	all := []schema.GroupVersionKind{}
	for kind, goType := range nativeScheme.AllKnownTypes() {
		field, ok := goType.FieldByName("ObjectMeta")
		if kind.Version == runtime.APIVersionInternal || !ok || !field.Anonymous {
			continue
		}
		kinds[kind] = goType
		all = append(all, kind)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	for _, kind := range all {
		t.visit(kinds[kind])
	}
	class, order := t.classes()
	fmt.Fprintln(out, "# Made by `patch-peer table` from the Go types of k8s.io/api and apiextensions-apiserver.")
	for _, number := range order {
		fmt.Fprintln(out, t.line(number, class))
	}
	for _, kind := range all {
		apiVersion, name := kind.ToAPIVersionAndKind()
		fmt.Fprintf(out, "K %s %s %d\n", apiVersion, name, class[t.number[kinds[kind]]])
	}
	return nil
}

type field struct {
	name   string
	goType reflect.Type
	meta   string
}

type table struct {
	number map[reflect.Type]int
	types  []reflect.Type
	fields [][]field
}

// visit numbers a struct type and those that its fields reach.
func (t *table) visit(goType reflect.Type) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		t.visit(goType.Elem())
	case reflect.Struct:
		if _, known := t.number[goType]; known {
			return
		}
		t.number[goType] = len(t.types)
		t.types = append(t.types, goType)
		found := fieldsOf(goType, goType)
		t.fields = append(t.fields, found)
		for _, f := range found {
			t.visit(f.goType)
		}
	}
}

// fieldsOf lists the fields of a struct as encoding/json sees them, embedded ones in their place,
// and asks the library itself for type, strategies and merge key.
func fieldsOf(root, goType reflect.Type) []field {
	var found []field
	for i := 0; i < goType.NumField(); i++ {
		f := goType.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct {
			found = append(found, fieldsOf(root, f.Type)...)
			continue
		}
		if name == "" {
			name = f.Name
		}
		fieldType, strategies, mergeKey, err := forkedjson.LookupPatchMetadataForStruct(root, name)
		must(err)
		if fieldType != f.Type {
			panic(fmt.Sprintf("%s.%s: the library finds another field", root, name))
		}
		meta := ""
		if len(strategies) != 1 || strategies[0] != "" {
			meta = "," + strings.Join(strategies, ",")
		}
		if mergeKey != "" {
			meta += "/" + mergeKey
		}
		found = append(found, field{name, fieldType, meta})
	}
	return found
}

// scalars are the kinds without anything below them.
var scalars = map[reflect.Kind]string{
	reflect.String: "s", reflect.Bool: "b", reflect.Int: "n", reflect.Int32: "i", reflect.Int64: "l",
	reflect.Uint8: "y", reflect.Uint16: "u", reflect.Uint32: "v", reflect.Uint64: "w",
	reflect.Float64: "d", reflect.Interface: "a",
}

func (t *table) text(goType reflect.Type, class []int) string {
	switch goType.Kind() {
	case reflect.Pointer:
		return "*" + t.text(goType.Elem(), class)
	case reflect.Slice:
		return "[" + t.text(goType.Elem(), class)
	case reflect.Map:
		return "{" + t.text(goType.Elem(), class)
	case reflect.Struct:
		return fmt.Sprintf("#%d", class[t.number[goType]])
	}
	letter, ok := scalars[goType.Kind()]
	if !ok {
		panic("no letter for " + goType.String())
	}
	return letter
}

func (t *table) line(number int, class []int) string {
	goType := t.types[number]
	line := "T " + goType.Name()
	if reflect.PointerTo(goType).Implements(unmarshaler) {
		line += "!"
	}
	for _, f := range t.fields[number] {
		line += " " + f.name + "=" + t.text(f.goType, class) + f.meta
	}
	return line
}

// classes gives equal types one number: all types begin as one class, and classes are split by
// their lines until nothing changes. It returns the class of each type and one type per class.
func (t *table) classes() ([]int, []int) {
	class := make([]int, len(t.types))
	for count := 0; ; {
		seen := map[string]int{}
		next := make([]int, len(t.types))
		order := []int{}
		for number := range t.types {
			line := t.line(number, class)
			if _, known := seen[line]; !known {
				seen[line] = len(order)
				order = append(order, number)
			}
			next[number] = seen[line]
		}
		class = next
		if len(order) == count {
			return class, order
		}
		count = len(order)
	}
}
