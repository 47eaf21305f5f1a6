package fakebrokers

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestDialsAfterClose(t *testing.T) {
	ctx, server := context.Background(), Serve(t, "redis")
	client := redis.NewClient(&redis.Options{
		Addr:               fmt.Sprintf("%s:%d", server.Host, server.Port),
		DialerRetryTimeout: time.Second, // between two attempts; 100 ms unless given
	})
	client.Ping(ctx)
	server.Call("refuse", nil, nil) // no new connections for a while, and the open one is lost
	server.Call("kill", Values{"how": "rst"}, nil)
	ended := make(chan error, 1)
	go func() { ended <- client.Get(ctx, "order").Err() }()
	time.Sleep(50 * time.Millisecond)
	client.Close()
	server.Call("restart", nil, nil)
	fmt.Println("the client is closed; the command:", <-ended)
	time.Sleep(time.Second)
	accepted := server.Journal(url.Values{"kind": {"accepted"}})
	fmt.Println("connections that came after the close:", len(accepted)-1)
}
