package acquireloop

import (
	"context"
	"strconv"

	"github.com/zklock/go-zklock/zklock"
)

func appended(ctx context.Context, client *zklock.Client, names []string) ([]*zklock.Lock, error) {
	var locks []*zklock.Lock
	for _, name := range names {
		lock, err := client.Mutex(name).Acquire(ctx) // want `a loop acquires several locks one after the other, and holds all of them: use zklock.All`
		if err != nil {
			return locks, err
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

func deferred(ctx context.Context, accounts []zklock.Acquirer) error {
	for _, account := range accounts {
		lock, err := account.Acquire(ctx) // want `use zklock.All`
		if err != nil {
			return err
		}
		defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }()
	}
	return nil
}

func indexed(ctx context.Context, client *zklock.Client) (locks [3]*zklock.Lock, err error) {
	for i := 0; i < len(locks); i++ {
		mutex := client.Mutex("shards/" + strconv.Itoa(i))
		locks[i], err = mutex.Acquire(ctx) // want `use zklock.All`
		if err != nil {
			return locks, err
		}
	}
	return locks, nil
}

func mapped(ctx context.Context, client *zklock.Client, locks map[string]*zklock.Lock) error {
	for name := range locks {
		lock, err := client.Mutex(name).Acquire(ctx) // want `use zklock.All`
		if err != nil {
			return err
		}
		locks[name] = lock
	}
	return nil
}

// Nothing below is a mistake.

func oneByOne(ctx context.Context, client *zklock.Client, names []string) error {
	for _, name := range names {
		lock, err := client.Mutex(name).Acquire(ctx)
		if err != nil {
			return err
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

func eachInItsFunction(ctx context.Context, client *zklock.Client, names []string) error {
	for _, name := range names {
		err := func() error {
			lock, err := client.Mutex(name).Acquire(ctx)
			if err != nil {
				return err
			}
			defer lock.Release(context.WithoutCancel(ctx))
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

func first(ctx context.Context, shards []*zklock.Mutex) error {
	for _, shard := range shards {
		lock, err := shard.Acquire(ctx)
		if err != nil {
			continue
		}
		defer lock.Release(context.WithoutCancel(ctx))
		return nil
	}
	return nil
}

func free(ctx context.Context, shards []*zklock.Mutex) (locks []*zklock.Lock) {
	for _, shard := range shards {
		if lock, err := shard.TryAcquire(ctx); err == nil {
			locks = append(locks, lock)
		}
	}
	return locks
}

func permits(ctx context.Context, importers *zklock.Semaphore) (locks []*zklock.Lock, err error) {
	for range 3 {
		lock, err := importers.Acquire(ctx)
		if err != nil {
			return locks, err
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

func requests(ctx context.Context, client *zklock.Client, names <-chan string, held map[string]*zklock.Lock) error {
	for name := range names {
		lock, err := client.Mutex(name).Acquire(ctx)
		if err != nil {
			return err
		}
		held[name] = lock
	}
	return nil
}
