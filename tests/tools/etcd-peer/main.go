// Command etcd-peer is what the reader of etcd snapshots is compared with: Go's own types.
//
//	etcd-peer table                    the table of kinds, etcd/src/storage/kinds.txt
//	etcd-peer objects COUNT SEED       random objects of every kind: as stored, and as JSON
//	etcd-peer large FILE BYTES         a snapshot of about that size
//	etcd-peer small FILE               a small one with everything in it, etcd/tests/small.db
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// types holds the kinds that an API server stores. Those of the two APIs that it has no client for
// are stored as JSON by default, and are here because a server may be told otherwise.
var types = func() *runtime.Scheme {
	s := runtime.NewScheme()
	must(scheme.AddToScheme(s))
	must(apiextensionsv1.AddToScheme(s))
	must(apiregistrationv1.AddToScheme(s))
	return s
}()

func main() {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	arguments := os.Args[1:]
	switch {
	case len(arguments) == 1 && arguments[0] == "table":
		must(printTable(out))
	case len(arguments) == 3 && arguments[0] == "objects":
		must(printObjects(out, number(arguments[1]), number(arguments[2])))
	case len(arguments) == 3 && arguments[0] == "large":
		must(writeLarge(arguments[1], number(arguments[2])))
	case len(arguments) == 2 && arguments[0] == "small":
		must(writeSmall(arguments[1]))
	default:
		fmt.Fprintln(os.Stderr, "usage: etcd-peer table | objects COUNT SEED | large FILE BYTES | small FILE")
		os.Exit(1)
	}
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
