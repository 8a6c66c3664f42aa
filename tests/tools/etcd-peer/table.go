package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// storedKinds lists the kinds that have metadata: those that can be stored.
func storedKinds() ([]schema.GroupVersionKind, map[schema.GroupVersionKind]reflect.Type) {
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	all := []schema.GroupVersionKind{}
	for kind, goType := range types.AllKnownTypes() {
		field, ok := goType.FieldByName("ObjectMeta")
		if kind.Version == runtime.APIVersionInternal || !ok || !field.Anonymous {
			continue
		}
		// A schema that may be written in two ways has JSON of its own, and CRDs are stored as JSON.
		if kind.Kind == "CustomResourceDefinition" {
			continue
		}
		kinds[kind] = goType
		all = append(all, kind)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all, kinds
}

// printTable writes every kind that is stored as protobuf, with the messages below it.
//
//	T NUMBER:NAME=[?|!]TYPE …     a message; its own number is its place among T lines. A field that
//	                              has no name stands in its parent's JSON; ? is left out of JSON when
//	                              it is empty (omitempty), ! also when it is a zero struct (omitzero)
//	K APIVERSION KIND NUMBER      a kind and the message it is
//
// A TYPE is a letter (see scalars and special), *TYPE for a pointer, [TYPE, {TYPE (a map to it) or
// #NUMBER. Messages that are equal, as those of several API versions often are, are written once.
func printTable(out io.Writer) error {
	all, kinds := storedKinds()
	t := &table{number: map[reflect.Type]int{}}
	for _, kind := range all {
		t.visit(kinds[kind])
	}
	class, order := t.classes()
	fmt.Fprintln(out, "# Made by `etcd-peer table` from the Go types of k8s.io/api.")
	for _, number := range order {
		fmt.Fprintln(out, t.line(number, class))
	}
	for _, kind := range all {
		apiVersion, name := kind.ToAPIVersionAndKind()
		fmt.Fprintf(out, "K %s %s %d\n", apiVersion, name, class[t.number[kinds[kind]]])
	}
	return nil
}

// special are the types that are written in JSON in a way of their own.
var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):          "t",
	reflect.TypeOf(metav1.MicroTime{}):     "m",
	reflect.TypeOf(metav1.Duration{}):      "D",
	reflect.TypeOf(resource.Quantity{}):    "Q",
	reflect.TypeOf(intstr.IntOrString{}):   "I",
	reflect.TypeOf(runtime.RawExtension{}): "R",
	reflect.TypeOf(metav1.FieldsV1{}):      "R",
	reflect.TypeOf(apiextensionsv1.JSON{}): "R",
}

// scalars are the kinds without anything below them.
var scalars = map[reflect.Kind]string{
	reflect.String: "s", reflect.Bool: "b", reflect.Int: "i", reflect.Int32: "i", reflect.Int64: "i",
	reflect.Int8: "i", reflect.Int16: "i", reflect.Uint8: "u", reflect.Uint16: "u",
	reflect.Uint32: "u", reflect.Uint64: "u", reflect.Float64: "d", reflect.Float32: "f",
}

var (
	marshaler   = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
	unmarshaler = reflect.TypeOf((*interface{ Unmarshal([]byte) error })(nil)).Elem()
)

type field struct {
	number int
	name   string
	empty  string
	goType reflect.Type
}

type table struct {
	number map[reflect.Type]int
	types  []reflect.Type
	fields [][]field
}

// visit numbers a message and those that its fields reach.
func (t *table) visit(goType reflect.Type) {
	if _, known := special[goType]; known || isTexts(goType) {
		return
	}
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		t.visit(goType.Elem())
	case reflect.Struct:
		if _, known := t.number[goType]; known {
			return
		}
		if reflect.PointerTo(goType).Implements(marshaler) {
			panic(goType.String() + " writes JSON in a way that the table does not know")
		}
		t.number[goType] = len(t.types)
		t.types = append(t.types, goType)
		t.fields = append(t.fields, nil)
		place := len(t.types) - 1
		found := fieldsOf(goType)
		t.fields[place] = found
		for _, f := range found {
			t.visit(f.goType)
		}
	}
}

// isTexts tells the named lists of texts that are messages of their own, with field 1 for the items.
func isTexts(goType reflect.Type) bool {
	return goType.Kind() == reflect.Slice && goType.Elem().Kind() == reflect.String &&
		reflect.PointerTo(goType).Implements(unmarshaler)
}

// fieldsOf lists a message's fields by number.
func fieldsOf(goType reflect.Type) []field {
	found := []field{}
	for i := 0; i < goType.NumField(); i++ {
		f := goType.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			// TypeMeta is in the envelope.
			continue
		}
		number, err := strconv.Atoi(tag[1])
		must(err)
		names := strings.Split(f.Tag.Get("json"), ",")
		if names[0] == "-" {
			continue
		}
		empty, inline := "", f.Anonymous && names[0] == ""
		for _, option := range names[1:] {
			switch {
			case option == "omitzero":
				empty = "!"
			case option == "omitempty" && empty == "":
				empty = "?"
			case option == "inline":
				inline = true
			}
		}
		if names[0] == "" && !inline {
			panic(goType.String() + "." + f.Name + " has no name in JSON")
		}
		found = append(found, field{number, names[0], empty, f.Type})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].number < found[j].number })
	return found
}

func (t *table) text(goType reflect.Type, class []int) string {
	if letter, known := special[goType]; known {
		return letter
	}
	if isTexts(goType) {
		return "X"
	}
	switch goType.Kind() {
	case reflect.Pointer:
		return "*" + t.text(goType.Elem(), class)
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[" + t.text(goType.Elem(), class)
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			panic("a map whose keys are no texts: " + goType.String())
		}
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
	line := "T"
	for _, f := range t.fields[number] {
		line += fmt.Sprintf(" %d:%s=%s%s", f.number, f.name, f.empty, t.text(f.goType, class))
	}
	return line
}

// classes gives equal messages one number: all begin as one class, and classes are split by their
// lines until nothing changes. It returns the class of each message and one message per class.
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
