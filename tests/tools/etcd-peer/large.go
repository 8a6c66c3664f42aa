package main

import (
	"encoding/binary"
	"fmt"
	"math/rand"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
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
