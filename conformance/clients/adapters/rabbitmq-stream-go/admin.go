package main

import (
	"errors"
	"strconv"

	"fakebrokers/kit"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// admin adds the ops of RabbitMQ Stream that are neither publishing nor consuming.
func admin() {
	a.Op("rmqs.create", with(func(s *session, c *kit.Call) (any, error) {
		options, err := streamOptions(c)
		if err != nil {
			return nil, err
		}
		return nil, s.env.DeclareStream(c.Args.Target, options)
	}))
	a.Op("rmqs.delete", with(func(s *session, c *kit.Call) (any, error) {
		return nil, s.env.DeleteStream(c.Args.Target)
	}))
	a.Op("rmqs.create_super_stream", with(createSuperStream))
	a.Op("rmqs.delete_super_stream", with(func(s *session, c *kit.Call) (any, error) {
		return nil, s.env.DeleteSuperStream(c.Args.Target)
	}))
	a.Op("rmqs.stream_stats", with(streamStats))
	a.Op("rmqs.metadata", with(metadata))
	a.Op("rmqs.partitions", with(func(s *session, c *kit.Call) (any, error) {
		found, err := s.env.QueryPartitions(c.Args.Target)
		return streams(found), err
	}))
	a.Op("rmqs.route", with(func(s *session, c *kit.Call) (any, error) {
		var given struct{ Key string }
		if err := c.Decode(&given); err != nil {
			return nil, err
		}
		found, err := s.env.QueryRoute(c.Args.Target, given.Key)
		return streams(found), err
	}))
	a.Op("rmqs.store_offset", with(func(s *session, c *kit.Call) (any, error) {
		return nil, s.env.StoreOffset(c.Args.Name, c.Args.Target, int64(c.Args.Offset))
	}))
	a.Op("rmqs.query_offset", with(func(s *session, c *kit.Call) (any, error) {
		offset, err := s.env.QueryOffset(c.Args.Name, c.Args.Target)
		return kit.Fields{"offset": kit.Int(offset)}, err
	}))
	a.Op("rmqs.query_sequence", with(func(s *session, c *kit.Call) (any, error) {
		sequence, err := s.env.QuerySequence(c.Args.Name, c.Args.Target)
		return kit.Fields{"sequence": kit.Int(sequence)}, err
	}))
	a.Ordered("rmqs.declare_publisher", func(c *kit.Call) (any, error) {
		return nil, inTurn(c, func(*publisher) error { return nil })
	})
	a.Ordered("rmqs.delete_publisher", func(c *kit.Call) (any, error) {
		return nil, inTurn(c, func(p *publisher) error {
			s, err := of(c)
			if err != nil {
				return err
			}
			s.forget(c)
			return p.producer.Close()
		})
	})
}

func with(do func(s *session, c *kit.Call) (any, error)) kit.Op {
	return func(c *kit.Call) (any, error) {
		s, err := of(c)
		if err != nil {
			return nil, err
		}
		return do(s, c)
	}
}

// streamOptions are the arguments that the library knows.
func streamOptions(c *kit.Call) (*stream.StreamOptions, error) {
	var given struct{ Arguments map[string]string }
	if err := c.Decode(&given); err != nil {
		return nil, err
	}
	options := stream.NewStreamOptions()
	for name, value := range given.Arguments {
		size, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, kit.Fail("invalid", err.Error())
		}
		switch name {
		case "max-length-bytes":
			options.SetMaxLengthBytes(stream.ByteCapacity{}.B(size))
		case "stream-max-segment-size-bytes":
			options.SetMaxSegmentSizeBytes(stream.ByteCapacity{}.B(size))
		default:
			return nil, kit.Fail("unsupported", "the library has no option for "+name)
		}
	}
	return options, nil
}

func createSuperStream(s *session, c *kit.Call) (any, error) {
	var given struct {
		Partitions int
		Keys       []string
	}
	if err := c.Decode(&given); err != nil {
		return nil, err
	}
	sizes, err := streamOptions(c)
	if err != nil {
		return nil, err
	}
	if given.Keys != nil {
		options := stream.NewBindingsOptions(given.Keys)
		options.MaxLengthBytes, options.MaxSegmentSizeBytes = sizes.MaxLengthBytes, sizes.MaxSegmentSizeBytes
		return nil, s.env.DeclareSuperStream(c.Args.Target, options)
	}
	options := stream.NewPartitionsOptions(given.Partitions)
	options.MaxLengthBytes, options.MaxSegmentSizeBytes = sizes.MaxLengthBytes, sizes.MaxSegmentSizeBytes
	return nil, s.env.DeclareSuperStream(c.Args.Target, options)
}

func streamStats(s *session, c *kit.Call) (any, error) {
	found, err := s.env.StreamStats(c.Args.Target)
	if err != nil {
		return nil, err
	}
	numbers := kit.Fields{"first": nil, "committed": nil}
	if first, err := found.FirstOffset(); err == nil {
		numbers["first"] = kit.Int(first)
	}
	if committed, err := found.CommittedChunkId(); err == nil {
		numbers["committed"] = kit.Int(committed)
	}
	return numbers, nil
}

func streams(names []string) kit.Fields { return kit.Fields{"streams": append([]string{}, names...)} }

func metadata(s *session, c *kit.Call) (any, error) {
	streams := []kit.Fields{}
	for _, name := range c.Args.Targets {
		found, err := s.env.StreamMetaData(name)
		shown := kit.Fields{"name": name, "exists": err == nil}
		switch {
		case errors.Is(err, stream.LeaderNotReady):
			shown["exists"], shown["leader"] = true, nil
		case err == nil:
			replicas := []string{}
			for _, replica := range found.Replicas {
				if replica != nil {
					replicas = append(replicas, address(replica))
				}
			}
			shown["code"], shown["leader"], shown["replicas"] = 1, address(found.Leader), replicas
		default:
			failure := classify(err)
			if failure.Kind != "refused" {
				return nil, err
			}
			shown["code"] = failure.Code
		}
		streams = append(streams, shown)
	}
	return kit.Fields{"streams": streams}, nil
}

func address(broker *stream.Broker) string { return broker.Host + ":" + broker.Port }
