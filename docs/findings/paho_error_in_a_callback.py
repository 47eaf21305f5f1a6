import threading
import time

from paho.mqtt import client as paho

from fakebrokers import MQTT

threading.excepthook = lambda problem: print("the network thread ends:", problem.exc_value)


def on_message(client: paho.Client, data: object, message: paho.MQTTMessage) -> None:
    raise ValueError(message.payload.decode())


with MQTT() as broker:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="shop")
    client.on_message = on_message
    client.connect(broker.host, broker.port)
    client.loop_start()
    client.subscribe("orders", qos=1)
    broker.wait_for(kind="Suback")
    for body in ("tea", "milk"):
        broker.publish("orders", body, qos=1)
    time.sleep(2)
    print("connected, as it says:", client.is_connected())
    print("not acknowledged:", broker.unacknowledged("shop"))
