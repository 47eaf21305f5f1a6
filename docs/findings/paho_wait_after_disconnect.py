import threading

from paho.mqtt import client as paho

from fakebrokers import MQTT
from fakebrokers.faults import drop

with MQTT() as broker:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()
    broker.faults.add(drop(kind="Puback", direction="out"))
    message = client.publish("orders", b"tea", qos=1)
    waiting = threading.Thread(target=message.wait_for_publish, daemon=True)
    waiting.start()
    broker.wait_for(kind="Publish")
    client.disconnect()
    client.loop_stop()
    waiting.join(5)
    print("disconnected for 5 s; wait_for_publish still waits:", waiting.is_alive())
