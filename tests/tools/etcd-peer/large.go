package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// writeLarge makes a snapshot of about so many bytes as a busy cluster leaves it: many small leases
// and events, some large objects, records of releases, keys that were overwritten and deleted, nothing compacted.
func writeLarge(path string, total int64) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, PageSize: 4096})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewSource(1))
	noise := make([]byte, 1<<20)
	random.Read(noise)
	text := []byte(base64.StdEncoding.EncodeToString(noise))
	created := map[string][2]int64{}
	revision, written := int64(1), int64(0)
	put := func(bucket *bbolt.Bucket, key string, size int, isDeleted, isRecord bool) error {
		if _, known := created[key]; isDeleted && !known {
			return nil // etcd writes no deletion of what is not there
		}
		revision++
		name := make([]byte, 17, 18)
		binary.BigEndian.PutUint64(name, uint64(revision))
		name[8] = '_'
		value := mvccpb.KeyValue{Key: []byte(key)}
		if isDeleted {
			name = append(name, 't')
			delete(created, key)
		} else {
			known := created[key]
			if known[0] == 0 {
				known[0] = revision
			}
			known[1]++
			created[key] = known
			value.CreateRevision, value.ModRevision, value.Version = known[0], revision, known[1]
			start := random.Intn(len(text) - size)
			value.Value = object(key, text[start:start+size], known[1], isRecord)
		}
		stored, err := value.Marshal()
		if err != nil {
			return err
		}
		written += int64(len(stored))
		return bucket.Put(name, stored)
	}
	for written < total {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{"meta", "lease", "members", "cluster", "auth"} {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			bucket, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			bucket.FillPercent = 0.9
			for n := 0; n < 5000 && written < total; n++ {
				name := func(resource string, many int) string {
					return fmt.Sprintf("/registry/%s/namespace-%02d/object-%06d", resource, random.Intn(50), random.Intn(many))
				}
				record := func() string {
					place := "/registry/secrets/namespace-%02d/sh.helm.release.v1.release-%d.v%d"
					return fmt.Sprintf(place, random.Intn(50), random.Intn(4), 1+random.Intn(10))
				}
				switch kind := random.Intn(100); {
				case kind < 40:
					err = put(bucket, name("leases", 2000), 600, false, false)
				case kind < 80:
					err = put(bucket, name("events", 1<<20), 1000+random.Intn(1000), false, false)
				case kind < 95:
					err = put(bucket, name("pods", 5000), 6000+random.Intn(9000), false, false)
				case kind < 96:
					err = put(bucket, name("secrets", 500), random.Intn(700_000), false, false)
				case kind < 97:
					err = put(bucket, record(), random.Intn(700_000), false, true)
				default:
					err = put(bucket, name("events", 1<<20), 0, true, false)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("%d revisions, %d keys\n", revision-1, len(created))
	if err := db.Close(); err != nil {
		return err
	}
	return appendDigest(path)
}

// object is the JSON of one with so much text in it; of a record, Helm's three layers around it.
func object(key string, text []byte, version int64, isRecord bool) []byte {
	path := strings.Split(key, "/")
	namespace, name := path[3], path[4]
	metadata := map[string]any{"namespace": namespace, "name": name}
	stored := map[string]any{"apiVersion": "v1", "kind": "Noise", "metadata": metadata}
	if path[2] == "secrets" {
		stored["kind"], stored["type"] = "Secret", "Opaque"
	}
	if !isRecord {
		stored["data"] = map[string]string{"noise": string(text)}
	} else {
		release, revision, _ := strings.Cut(strings.TrimPrefix(name, "sh.helm.release.v1."), ".v")
		number, err := strconv.Atoi(revision)
		must(err)
		metadata["labels"] = map[string]string{"owner": "helm", "name": release, "version": revision, "status": "deployed"}
		record, err := json.Marshal(map[string]any{
			"name": release, "namespace": namespace, "version": number, "manifest": "# " + string(text) + "\n",
			"info":  map[string]any{"status": "deployed", "first_deployed": "2026-01-01T00:00:00Z", "last_deployed": "2026-01-01T00:00:00Z", "deleted": "", "description": fmt.Sprint("Change ", version)},
			"chart": map[string]any{"metadata": map[string]any{"name": "noise", "version": "1.0.0", "apiVersion": "v2"}},
		})
		must(err)
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, err = writer.Write(record)
		must(err)
		must(writer.Close())
		inner := base64.StdEncoding.EncodeToString(packed.Bytes())
		stored["type"] = "helm.sh/release.v1"
		stored["data"] = map[string]string{"release": base64.StdEncoding.EncodeToString([]byte(inner))}
	}
	result, err := json.Marshal(stored)
	must(err)
	return result
}

// appendDigest makes a snapshot of a database: its SHA-256 stands at the end.
func appendDigest(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	_, err = file.Write(hash.Sum(nil))
	return err
}

// writeSmall makes a database with everything that a reader meets, in pages of 1 KiB: branches, a
// value on pages of its own, overwritten, deleted and compacted keys, protobuf, JSON, encryption.
func writeSmall(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 1024})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewSource(1))
	noise := make([]byte, 5000)
	random.Read(noise)
	revision := int64(1)
	created := map[string][2]int64{} // revision and version
	put := func(tx *bbolt.Tx, key string, text []byte) error {
		known := created[key]
		if text == nil && known[1] == 0 {
			return nil // etcd writes no deletion of what is not there
		}
		revision++
		name := make([]byte, 17, 18)
		binary.BigEndian.PutUint64(name, uint64(revision))
		name[8] = '_'
		value := mvccpb.KeyValue{Key: []byte(key)}
		if text == nil {
			name = append(name, 't')
			delete(created, key)
		} else {
			if known[1] == 0 {
				known[0] = revision
			}
			known[1]++
			created[key] = known
			value.CreateRevision, value.ModRevision, value.Version = known[0], revision, known[1]
			value.Value = text
		}
		stored, err := value.Marshal()
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("key")).Put(name, stored)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"alarm", "auth", "cluster", "key", "lease", "members", "meta"} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		compacted := make([]byte, 17)
		compacted[7], compacted[8] = 1, '_'
		must(tx.Bucket([]byte("meta")).Put([]byte("finishedCompactRev"), compacted))
		must(tx.Bucket([]byte("cluster")).Put([]byte("clusterVersion"), []byte("3.6.0")))
		must(put(tx, "/registry/namespaces/kube-system", []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system"}}`)))
		secret, err := runtime.Encode(protobuf.NewSerializer(types, types), &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default", Labels: map[string]string{"a": "b"}},
			Data:       map[string][]byte{"key": []byte("value")},
		})
		must(err)
		must(put(tx, "/registry/secrets/default/one", secret))
		must(put(tx, "/registry/secrets/default/closed", []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef")))
		return put(tx, "/registry/configmaps/default/large", append([]byte(`{"kind":"ConfigMap"} `), noise...))
	})
	for n := 0; n < 120 && err == nil; n++ {
		err = db.Update(func(tx *bbolt.Tx) error {
			key := fmt.Sprintf("/registry/configmaps/default/c%02d", n%50)
			if n%7 == 6 {
				return put(tx, key, nil)
			}
			return put(tx, key, []byte(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%02d","namespace":"default"},"data":{"n":"%d"}}`, n%50, n)))
		})
	}
	if err != nil {
		return err
	}
	return db.Close()
}
