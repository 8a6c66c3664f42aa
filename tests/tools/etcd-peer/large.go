package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// writeLarge makes a database of about so many bytes as a busy cluster leaves it: many small leases
// and events, some large objects, keys that were overwritten and deleted, nothing compacted.
func writeLarge(path string, size int64) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, PageSize: 4096})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewSource(1))
	noise := make([]byte, 1<<20)
	random.Read(noise)
	created := map[string][2]int64{}
	revision, written := int64(1), int64(0)
	put := func(bucket *bbolt.Bucket, key string, bytes int, isDeleted bool) error {
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
			start := random.Intn(len(noise) - bytes)
			value.Value = append([]byte("{\"kind\":\"Noise\",\"metadata\":{}} "), noise[start:start+bytes]...)
		}
		text, err := value.Marshal()
		if err != nil {
			return err
		}
		written += int64(len(text))
		return bucket.Put(name, text)
	}
	for written < size {
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
			for n := 0; n < 5000 && written < size; n++ {
				name := func(resource string, many int) string {
					return fmt.Sprintf("/registry/%s/namespace-%02d/object-%06d", resource, random.Intn(50), random.Intn(many))
				}
				switch kind := random.Intn(100); {
				case kind < 40:
					err = put(bucket, name("leases", 2000), 600, false)
				case kind < 80:
					err = put(bucket, name("events", 1<<20), 1000+random.Intn(1000), false)
				case kind < 95:
					err = put(bucket, name("pods", 5000), 6000+random.Intn(9000), false)
				case kind < 97:
					err = put(bucket, name("secrets", 500), random.Intn(700_000), false)
				default:
					err = put(bucket, name("events", 1<<20), 0, true)
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
	return db.Close()
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
	versions := map[string]int64{}
	put := func(tx *bbolt.Tx, key string, text []byte) error {
		revision++
		name := make([]byte, 17, 18)
		binary.BigEndian.PutUint64(name, uint64(revision))
		name[8] = '_'
		value := mvccpb.KeyValue{Key: []byte(key)}
		if text == nil {
			name = append(name, 't')
			versions[key] = 0
		} else {
			versions[key]++
			value.CreateRevision, value.ModRevision, value.Version = 2, revision, versions[key]
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
			return put(tx, key, []byte(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%02d"},"data":{"n":"%d"}}`, n%50, n)))
		})
	}
	if err != nil {
		return err
	}
	return db.Close()
}
