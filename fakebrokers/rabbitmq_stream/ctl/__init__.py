"""``fakebrokers ctl rabbitmq``: a fake RabbitMQ told what to do in the words of its own tools.

Test suites of clients call rabbitmqctl and rabbitmq-streams; a script of one line has them call this:

    #!/bin/sh
    exec fakebrokers ctl rabbitmq --control http://127.0.0.1:9090 "$@"
"""

from fakebrokers.rabbitmq_stream.ctl import access, streams
from fakebrokers.rabbitmq_stream.ctl.tool import rabbitmq

__all__ = ["access", "rabbitmq", "streams"]
