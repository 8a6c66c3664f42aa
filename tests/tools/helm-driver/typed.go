package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"time"
)

// typed describes a Go value without losing its type: {"t": TYPE, "v": …}. Numbers and strings
// are text (Go's own for numbers, base64 for strings that are not UTF-8, type "bytes"), lists are
// arrays, maps are arrays of [key, value] in key order.
func typed(v any) any {
	return typedValue(reflect.ValueOf(v))
}

func typedValue(v reflect.Value) any {
	if !v.IsValid() {
		return answer{"t": "nil"}
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return answer{"t": "nil"}
		}
		return typedValue(v.Elem())
	case reflect.Bool:
		return answer{"t": "bool", "v": v.Bool()}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return answer{"t": v.Kind().String(), "v": strconv.FormatInt(v.Int(), 10)}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return answer{"t": v.Kind().String(), "v": strconv.FormatUint(v.Uint(), 10)}
	case reflect.Float32, reflect.Float64:
		return answer{"t": v.Kind().String(), "v": strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	case reflect.String:
		s := v.String()
		if plain, err := json.Marshal(s); err == nil {
			var back string
			if json.Unmarshal(plain, &back) == nil && back == s {
				return answer{"t": "string", "v": s}
			}
		}
		return answer{"t": "bytes", "v": base64.StdEncoding.EncodeToString([]byte(s))}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return answer{"t": "nil list"}
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = typedValue(v.Index(i))
		}
		return answer{"t": "list", "v": items}
	case reflect.Map:
		if v.IsNil() {
			return answer{"t": "nil map"}
		}
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
		items := make([]any, len(keys))
		for i, key := range keys {
			items[i] = []any{typedValue(key), typedValue(v.MapIndex(key))}
		}
		return answer{"t": "map", "v": items}
	default:
		return answer{"t": v.Type().String(), "v": fmt.Sprint(v.Interface())}
	}
}

// untyped is the inverse of typed for what tests send. Lists may say what they hold: "t" is
// "[]string", "[]int", "map[string]int", "map[int]string" and so on; "time" holds RFC 3339.
func untyped(raw json.RawMessage) (any, error) {
	var node struct {
		T string          `json:"t"`
		V json.RawMessage `json:"v"`
	}
	if err := json.Unmarshal(raw, &node); err != nil {
		return nil, err
	}
	text := func() string {
		var s string
		if json.Unmarshal(node.V, &s) == nil {
			return s
		}
		return string(node.V)
	}
	integer := func() (int64, error) { return strconv.ParseInt(text(), 10, 64) }
	switch node.T {
	case "nil":
		return nil, nil
	case "bool":
		return text() == "true", nil
	case "int":
		n, err := integer()
		return int(n), err
	case "int8":
		n, err := integer()
		return int8(n), err
	case "int16":
		n, err := integer()
		return int16(n), err
	case "int32":
		n, err := integer()
		return int32(n), err
	case "int64":
		return integer()
	case "uint", "uint8", "uint16", "uint32", "uint64":
		n, err := strconv.ParseUint(text(), 10, 64)
		if err != nil {
			return nil, err
		}
		kinds := map[string]any{"uint": uint(n), "uint8": uint8(n), "uint16": uint16(n), "uint32": uint32(n), "uint64": n}
		return kinds[node.T], nil
	case "float32":
		f, err := strconv.ParseFloat(text(), 32)
		return float32(f), err
	case "float64":
		switch text() {
		case "NaN":
			return math.NaN(), nil
		}
		return strconv.ParseFloat(text(), 64)
	case "string":
		return text(), nil
	case "bytes":
		b, err := base64.StdEncoding.DecodeString(text())
		return string(b), err
	case "[]byte":
		return base64.StdEncoding.DecodeString(text())
	case "time":
		return time.Parse(time.RFC3339Nano, text())
	case "nil list":
		return []any(nil), nil
	case "nil map":
		return map[string]any(nil), nil
	case "list":
		var items []json.RawMessage
		if err := json.Unmarshal(node.V, &items); err != nil {
			return nil, err
		}
		out := make([]any, len(items))
		for i, item := range items {
			v, err := untyped(item)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case "map":
		var items [][2]json.RawMessage
		if err := json.Unmarshal(node.V, &items); err != nil {
			return nil, err
		}
		out := make(map[string]any, len(items))
		for _, item := range items {
			key, err := untyped(item[0])
			if err != nil {
				return nil, err
			}
			if out[fmt.Sprint(key)], err = untyped(item[1]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	// Go's own composite types, their contents as plain JSON.
	holders := map[string]any{
		"[]string": &[]string{}, "[]int": &[]int{}, "[]int64": &[]int64{}, "[]float64": &[]float64{},
		"[]bool": &[]bool{}, "[][]int": &[][]int{}, "map[string]string": &map[string]string{},
		"map[string]int": &map[string]int{}, "map[int]string": &map[int]string{},
		"map[int]int": &map[int]int{}, "map[string][]string": &map[string][]string{},
	}
	holder, ok := holders[node.T]
	if !ok {
		return nil, fmt.Errorf("unknown type %q", node.T)
	}
	if err := json.Unmarshal(node.V, holder); err != nil {
		return nil, err
	}
	return reflect.ValueOf(holder).Elem().Interface(), nil
}
