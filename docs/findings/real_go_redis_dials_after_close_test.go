package fakebrokers

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const address = "127.0.0.1:16384"

func startRedis(t *testing.T) *exec.Cmd {
	server := exec.Command("redis-server", "--port", "16384", "--bind", "127.0.0.1", "--save", "")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestDialsAfterCloseAtRedis(t *testing.T) {
	ctx, server := context.Background(), startRedis(t)
	dialled, ended := make(chan error, 100), make(chan error)
	options := &redis.Options{
		Addr:               address,
		DialerRetryTimeout: time.Second,
		Dialer: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := net.Dial(network, address)
			dialled <- err
			return conn, err
		},
	}
	client := redis.NewClient(options)
	for client.Ping(ctx).Err() != nil {
	}
	for <-dialled != nil {
	}
	server.Process.Kill()
	server.Wait()
	go func() { ended <- client.Get(ctx, "order").Err() }()
	for <-dialled == nil {
	}
	client.Close()
	server = startRedis(t)
	defer server.Process.Kill()
	fmt.Println("the client is closed; the command:", <-ended)
	other := redis.NewClient(&redis.Options{Addr: address})
	told := regexp.MustCompile(`total_connections_received:(\d+)`).FindStringSubmatch(other.Info(ctx, "stats").Val())
	count, _ := strconv.Atoi(told[1]) // with that of the client that asks
	fmt.Println("connections that came after the close:", count-1)
}
