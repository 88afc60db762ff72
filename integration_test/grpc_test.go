package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/examples/grpc/orderspb"
	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

const (
	grpcURLEnv  = "ZKLOCK_TEST_GRPC_URL"  // makes TestGRPCProcess a process of TestGRPCServersTakeTurns
	grpcDirEnv  = "ZKLOCK_TEST_GRPC_DIR"  // for a server: the folder of its files
	grpcDialEnv = "ZKLOCK_TEST_GRPC_DIAL" // for a client: the address of the server that it calls
)

// TestGRPCProcess is a server or client process of TestGRPCServersTakeTurns.
func TestGRPCProcess(t *testing.T) {
	zkURL := os.Getenv(grpcURLEnv)
	if zkURL == "" {
		t.Skip("TestGRPCServersTakeTurns runs it in separate processes")
	}
	c, err := zklock.Open(zkURL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if address := os.Getenv(grpcDialEnv); address != "" {
		abandonGRPC(t, c, address)
		return
	}
	declared := interceptors.FromProto(c)
	server := grpc.NewServer(
		grpc.UnaryInterceptor(interceptors.UnaryServerInterceptor(declared)),
		grpc.StreamInterceptor(interceptors.StreamServerInterceptor(declared, interceptors.WithFirstMessage())))
	orderspb.RegisterOrdersServer(server, &ledger{dir: os.Getenv(grpcDirEnv)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent process closes it or has ended
		server.GracefulStop()
	}()
	fmt.Printf("ready %s\n", listener.Addr())
	if err := server.Serve(listener); err != nil {
		t.Error(err)
	}
}

// abandonGRPC holds a lock of the client and, through a stream, a lock of the server, until
// the test kills the process.
func abandonGRPC(t *testing.T, c *zklock.Client, address string) {
	stream, err := orderspb.NewOrdersClient(dialGRPC(t, address, grpc.WithStreamInterceptor(interceptors.StreamClientInterceptor(fixed(c, "client/killed"))))).Fill(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&orderspb.Item{OrderId: "killed"}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func fixed(c *zklock.Client, name string) interceptors.Pick {
	return func(context.Context, interceptors.Call) zklock.Acquirer { return c.Mutex(name) }
}

func dialGRPC(t testing.TB, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ledger counts in files that all servers share. It reads an order's file, and writes it
// later. Two calls that do so at the same time lose a count, or find each other's guard file.
type ledger struct {
	orderspb.UnimplementedOrdersServer
	dir string
}

// count reads an order's file, calls work, and writes the old number plus n to the file.
func (l *ledger) count(order string, work func() (n int, err error)) error {
	path := filepath.Join(l.dir, order)
	guard, err := os.OpenFile(path+".guard", os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return status.Errorf(codes.DataLoss, "two calls hold order %s at the same time: %v", order, err)
	}
	defer os.Remove(guard.Name())
	defer guard.Close()
	total := readCount(path)
	n, err := work()
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(total+n)), 0o600)
}

func readCount(path string) int {
	text, _ := os.ReadFile(path) // the file does not exist at first
	n, _ := strconv.Atoi(string(text))
	return n
}

func (l *ledger) Pay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return &orderspb.Receipt{}, l.count(r.GetOrderId(), func() (int, error) { return 1, nil })
}

func (l *ledger) TryPay(ctx context.Context, r *orderspb.PayRequest) (*orderspb.Receipt, error) {
	return l.Pay(ctx, r)
}

func (l *ledger) Fill(stream orderspb.Orders_FillServer) error {
	item, err := stream.Recv()
	if err != nil {
		return err
	}
	err = l.count(item.GetOrderId(), func() (n int, err error) {
		for ; err == nil; n++ {
			_, err = stream.Recv()
		}
		if err == io.EOF {
			return n, nil
		}
		return 0, err
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&orderspb.Receipt{})
}

// startGRPC runs this test binary as a TestGRPCProcess until the test is over. When that is
// ready, startGRPC returns its command and, for a server, its address.
func startGRPC(t *testing.T, env ...string) (cmd *exec.Cmd, says string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestGRPCProcess$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &searched{where: "a gRPC process's stderr", to: &stderr}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil && cmd.ProcessState.Exited() {
			t.Errorf("a process ended with %v\n%s%s", err, rest, &stderr)
		}
	})
	line, err := lines.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("a process printed %q, %v, want ready", line, err)
	}
	return cmd, strings.TrimSpace(strings.TrimPrefix(line, "ready"))
}

// TestGRPCServersTakeTurns runs two server processes. They share only the ensemble and the
// files that they count in.
func TestGRPCServersTakeTurns(t *testing.T) {
	t.Parallel()
	const items, orders, callers = 3, 20, 40
	streams := long.Count(t, "ZKLOCK_STREAMS", 40, 200)
	unary := 10 * streams
	zkServers := trioOfServers(t)
	params := quick()
	root := rootOf(t)
	at := func(i int) string {
		return grpcURLEnv + "=" + withCanary(ensemble.URL(zkServers.Server(i).Addr(), root, params))
	}
	dir := grpcDirEnv + "=" + t.TempDir()
	var addresses []string
	var stubs []orderspb.OrdersClient
	for i := range 2 {
		_, address := startGRPC(t, at(i), dir)
		addresses = append(addresses, address)
		stubs = append(stubs, orderspb.NewOrdersClient(dialGRPC(t, address)))
	}

	began := time.Now()
	var next atomic.Int64
	var wg sync.WaitGroup
	ctx := within(t)
	for range callers {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < unary+streams; i = int(next.Add(1) - 1) {
				stub, order := stubs[i%2], fmt.Sprint(i/2%orders)
				if err := callGRPC(ctx, stub, order, i%11 == 10, items); err != nil {
					t.Errorf("call %d of order %s: %v", i, order, err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	total := 0
	for o := range orders {
		n := readCount(filepath.Join(strings.TrimPrefix(dir, grpcDirEnv+"="), fmt.Sprint(o)))
		if n == 0 {
			t.Errorf("no call of order %d was counted", o)
		}
		total += n
	}
	if want := unary + streams*items; total != want {
		t.Errorf("%d payments and items were counted, want %d", total, want)
	}
	t.Logf("%d unary calls and %d streams over %d orders at two servers in %v", unary, streams, orders, took)

	t.Run("an abandoned stream leaves nothing", func(t *testing.T) {
		c, err := zklock.Open(ensemble.URL(zkServers.Hosts(), root, params))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conn := dialGRPC(t, addresses[0], grpc.WithStreamInterceptor(interceptors.StreamClientInterceptor(fixed(c, "client/abandoned"))))
		ctx, abandon := context.WithCancel(t.Context())
		defer abandon()
		stream, err := orderspb.NewOrdersClient(conn).Fill(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&orderspb.Item{OrderId: "abandoned"}); err != nil {
			t.Fatal(err)
		}
		awaitTaken(t, stubs[1], "abandoned")
		if n := c.Stats().Held; n != 1 {
			t.Errorf("the client holds %d locks, want 1", n)
		}
		abandon()
		if _, err := stubs[1].Pay(within(t), &orderspb.PayRequest{OrderId: "abandoned"}); err != nil {
			t.Errorf("a call behind the abandoned stream: %v", err)
		}
		eventually(t, "the client's lock is released", func() bool { return c.Stats().Held == 0 })
	})
	t.Run("a killed client leaves nothing", func(t *testing.T) {
		victim, _ := startGRPC(t, at(2), grpcDialEnv+"="+addresses[0])
		awaitTaken(t, stubs[1], "killed")
		if err := victim.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := stubs[1].Pay(within(t), &orderspb.PayRequest{OrderId: "killed"}); err != nil {
			t.Errorf("a call behind the killed client: %v", err)
		}
	})
	raw := dialRaw(t, zkServers.Hosts(), 10*time.Second)
	seen := 0
	eventually(t, "nothing is left in any queue", func() bool {
		names, _, err := raw.Children(root)
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, name := range names {
			nodes, _, err := raw.Children(root + "/" + name)
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				t.Fatal(err)
			}
			left += len(nodes)
		}
		seen = max(seen, left)
		return left == 0
	})
	if seen == 0 {
		t.Error("the killed client's lock was never in a queue: the test looks at the wrong queues")
	}
}

// callGRPC makes one call: a payment, or a stream of items.
func callGRPC(ctx context.Context, stub orderspb.OrdersClient, order string, stream bool, items int) error {
	if !stream {
		_, err := stub.Pay(ctx, &orderspb.PayRequest{OrderId: order})
		return err
	}
	s, err := stub.Fill(ctx)
	if err != nil {
		return err
	}
	for range items {
		if err := s.Send(&orderspb.Item{OrderId: order}); err != nil {
			break // CloseAndRecv returns the reason
		}
	}
	_, err = s.CloseAndRecv()
	return err
}

// awaitTaken waits until a call holds an order's lock.
func awaitTaken(t *testing.T, stub orderspb.OrdersClient, order string) {
	t.Helper()
	eventually(t, "order "+order+" is taken", func() bool {
		_, err := stub.TryPay(within(t), &orderspb.PayRequest{OrderId: order})
		return interceptors.Reason(err) == interceptors.ReasonContended
	})
}

// TestGRPCExampleRunsOnZooKeeper runs the example as its readers would.
func TestGRPCExampleRunsOnZooKeeper(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	out, err := exec.CommandContext(within(t), "go", "run", "../examples/grpc", "-url", e.URL(rootOf(t), url.Values{})).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "at most 1 call at once") || !strings.Contains(string(out), "zklock on zk://") {
		t.Errorf("%v\n%s", err, out)
	}
}
