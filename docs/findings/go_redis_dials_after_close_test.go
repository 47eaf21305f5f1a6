package fakebrokers

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestDialsAfterClose(t *testing.T) {
	ctx, server := context.Background(), Serve(t, "redis")
	dialled, ended := make(chan error, 100), make(chan error)
	client := redis.NewClient(&redis.Options{
		Addr:               fmt.Sprintf("%s:%d", server.Host, server.Port),
		DialerRetryTimeout: time.Second, // between two attempts; 100 ms unless given
		Dialer: func(_ context.Context, network, address string) (net.Conn, error) {
			conn, err := net.Dial(network, address)
			dialled <- err
			return conn, err
		},
	})
	client.Ping(ctx)
	server.Call("refuse", nil, nil) // no new connections for a while, and the open one is lost
	server.Call("kill", Values{"how": "rst"}, nil)
	go func() { ended <- client.Get(ctx, "order").Err() }()
	for <-dialled == nil {
	}
	client.Close()
	server.Call("restart", nil, nil)
	fmt.Println("the client is closed; the command:", <-ended)
	accepted := server.WaitFor("accepted", 2, time.Minute)
	fmt.Println("connections that came after the close:", len(accepted)-1)
}
