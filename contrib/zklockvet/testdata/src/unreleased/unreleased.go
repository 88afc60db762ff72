package unreleased

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

func check() error { return nil }

func use(zklock.Token) {}

func never(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx) // want `lock is not released on the path to line 23: release it with defer, or use zklock.Do`
	if err != nil {
		return err
	}
	use(lock.Token())
	return nil
}

func onOnePath(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx) // want `lock is not released on the path to line 32`
	if err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	return lock.Release(ctx)
}

func sameVariable(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx) // want `lock is not released on the path to line 44`
	if err != nil {
		return err
	}
	err = check()
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

func dropped(ctx context.Context, mutex *zklock.Mutex) error {
	_, err := mutex.Acquire(ctx) // want `the lock that Acquire returns is dropped and never released`
	return err
}

func ignored(ctx context.Context, mutex *zklock.Mutex) {
	mutex.TryAcquire(ctx) // want `the lock that TryAcquire returns is dropped and never released`
}

func loop(ctx context.Context, client *zklock.Client, names []string) error {
	for _, name := range names {
		lock, err := client.Mutex(name).Acquire(ctx) // want `lock is not released before the loop acquires the next one`
		if err != nil {
			return err
		}
		if check() != nil {
			continue
		}
		_ = lock.Release(ctx)
	}
	return nil
}

func printed(ctx context.Context, mutex *zklock.Mutex) {
	lock, err := mutex.TryAcquire(ctx) // want `lock is not released on the path to line 81`
	if err != nil {
		return
	}
	fmt.Println(lock)
	work, cancel := lock.Context(ctx)
	defer cancel()
	<-work.Done()
}

func switched(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx) // want `lock is not released on the path to line 91`
	switch {
	case errors.Is(err, zklock.ErrNotAcquired):
		return nil
	case err != nil:
		return err
	case check() != nil:
		return errors.New("check")
	}
	return lock.Release(ctx)
}

func leader(ctx context.Context, e *election.Election) error {
	term, err := e.Campaign(ctx) // want `term is not released on the path to line 102: resign with defer, or use Election.Run`
	if err != nil {
		return err
	}
	use(term.Token())
	return check()
}

func nested(ctx context.Context, mutex *zklock.Mutex, run func(func() error) error) error {
	return run(func() error {
		lock, err := mutex.Acquire(ctx) // want `lock is not released on the path to line 111`
		if err != nil {
			return err
		}
		return check2(lock.Token())
	})
}

func goroutine(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx) // want `lock is not released on the path to line 122`
	if err != nil {
		return err
	}
	work, _ := lock.Context(ctx)
	go func() { <-work.Done() }()
	return nil
}

func check2(zklock.Token) error { return nil }

// Nothing below is a mistake.

func right(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }()
	return check()
}

func inverted(ctx context.Context, mutex *zklock.Mutex) error {
	if lock, err := mutex.TryAcquire(ctx); err == nil {
		use(lock.Token())
		return lock.Release(ctx)
	}
	return nil
}

func either(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx)
	if errors.Is(err, zklock.ErrNotAcquired) {
		lock, err = mutex.Acquire(ctx)
	}
	if err != nil || lock == nil {
		return err
	}
	return lock.Release(ctx)
}

func early(ctx context.Context, mutex *zklock.Mutex) error {
	var lock *zklock.Lock
	defer func() {
		if lock != nil {
			_ = lock.Release(context.WithoutCancel(ctx))
		}
	}()
	var err error
	if lock, err = mutex.Acquire(ctx); err != nil {
		return err
	}
	return check()
}

func returned(ctx context.Context, mutex *zklock.Mutex) (lock *zklock.Lock, err error) {
	lock, err = mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return
}

type service struct{ lock *zklock.Lock }

func (s *service) stored(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	s.lock = lock
	return nil
}

func (s *service) field(ctx context.Context, mutex *zklock.Mutex) (err error) {
	s.lock, err = mutex.Acquire(ctx)
	return err
}

func handedOn(ctx context.Context, mutex *zklock.Mutex, locks chan<- *zklock.Lock) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	locks <- lock
	return nil
}

func untilLost(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	select {
	case <-lock.Done():
		return lock.Err()
	case <-ctx.Done():
		return lock.Release(context.WithoutCancel(ctx))
	}
}

func lost(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	if !lock.Valid() || lock.Err() != nil {
		return zklock.ErrLost
	}
	if err := lock.Verify(ctx); errors.Is(err, zklock.ErrLost) {
		return err
	}
	return lock.Release(ctx)
}

func exits(ctx context.Context, mutex *zklock.Mutex) {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := check(); err != nil {
		log.Fatal(err)
	}
	if err := check(); err != nil {
		panic(err)
	}
	_ = lock.Release(ctx)
}

func probe(ctx context.Context, mutex *zklock.Mutex) {
	if _, err := mutex.TryAcquire(ctx); err == nil {
		log.Fatal("the lock is free")
	}
}

func busy(err error) bool { return err != nil }

func judged(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx)
	if busy(err) {
		return nil
	}
	return lock.Release(ctx)
}

func judgedBefore(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx)
	ok := busy(err)
	if ok {
		return nil
	}
	return lock.Release(ctx)
}

func compared(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.TryAcquire(ctx)
	if err == zklock.ErrNotAcquired {
		return nil
	}
	switch err {
	case nil:
	default:
		return err
	}
	return (*zklock.Lock).Release(lock, ctx)
}

func methodExpression(ctx context.Context, mutex *zklock.Mutex) error {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	return (*zklock.Lock).Release(lock, ctx)
}

func begin(ctx context.Context, mutex *zklock.Mutex) (context.Context, error) {
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	held, _ := lock.Context(ctx) // the caller finds the lock in the context
	return held, nil
}

func closed(ctx context.Context, client *zklock.Client) error {
	defer client.Close() // it releases all locks
	lock, err := client.Mutex("orders").Acquire(ctx)
	if err != nil {
		return err
	}
	return check2(lock.Token())
}
