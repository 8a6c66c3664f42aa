package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

type line struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Stored     []byte          `json:"stored"`
	Object     json.RawMessage `json:"object"`
}

// printObjects writes count random objects of every kind, a line each: the value that an API server
// would store, and the JSON of what it would read back.
func printObjects(out io.Writer, count, seed int64) error {
	all, kinds := storedKinds()
	codec := protobuf.NewSerializer(types, types)
	encoder := json.NewEncoder(out)
	fill := filler(seed)
	for _, kind := range all {
		for n := int64(0); n < count; n++ {
			object := reflect.New(kinds[kind]).Interface().(runtime.Object)
			if n > 0 { // the first one is empty
				fill.Fill(object)
			}
			object.GetObjectKind().SetGroupVersionKind(kind)
			stored, err := runtime.Encode(codec, object)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			read := reflect.New(kinds[kind]).Interface().(runtime.Object)
			if _, _, err := codec.Decode(stored, nil, read); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			read.GetObjectKind().SetGroupVersionKind(kind)
			// The revision is the reader's to say.
			read.(metav1.Object).SetResourceVersion("1")
			text, err := json.Marshal(read)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			apiVersion, name := kind.ToAPIVersionAndKind()
			if err := encoder.Encode(line{apiVersion, name, stored, text}); err != nil {
				return err
			}
		}
	}
	return nil
}

func filler(seed int64) *randfill.Filler {
	texts := []string{"", "a", "0", "true", "ä \"quoted\" <x>", "line\nline", "a.b/c"}
	text := func(c randfill.Continue) string { return texts[c.Intn(len(texts))] }
	moment := func(c randfill.Continue) time.Time {
		return time.Unix(c.Int63n(4_000_000_000)-1_000_000_000, c.Int63n(1_000_000_000)).UTC()
	}
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(12).
		RandSource(rand.NewSource(seed)).Funcs(
		func(v *string, c randfill.Continue) { *v = text(c) },
		func(v *metav1.TypeMeta, c randfill.Continue) {},
		func(v *metav1.Time, c randfill.Continue) {
			if c.Intn(4) > 0 {
				*v = metav1.NewTime(moment(c))
			}
		},
		func(v *metav1.MicroTime, c randfill.Continue) {
			if c.Intn(4) > 0 {
				*v = metav1.NewMicroTime(moment(c).Truncate(time.Microsecond))
			}
		},
		func(v *metav1.Duration, c randfill.Continue) {
			v.Duration = time.Duration(c.Int63n(int64(1) << c.Intn(60)))
		},
		func(v *resource.Quantity, c randfill.Continue) {
			quantities := []string{"0", "1", "100m", "1.5", "2Gi", "1e3", "-5k", "12345678901234567890"}
			*v = resource.MustParse(quantities[c.Intn(len(quantities))])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if c.Bool() {
				*v = intstr.FromInt32(int32(c.Intn(3) - 1))
			} else {
				*v = intstr.FromString(text(c))
			}
		},
		func(v *runtime.RawExtension, c randfill.Continue) {
			raws := []string{"", `{"a":[1,null,{"b":"c"}]}`, `"x"`, "7"}
			if raw := raws[c.Intn(len(raws))]; raw != "" {
				v.Raw = []byte(raw)
			}
		},
		func(v *metav1.FieldsV1, c randfill.Continue) { v.Raw = []byte(`{"f:metadata":{".":{}}}`) },
		func(v *float64, c randfill.Continue) { *v = float64(c.Intn(1000)) / 8 },
	)
}
