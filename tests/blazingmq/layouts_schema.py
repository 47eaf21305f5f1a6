"""The schema of control messages of BlazingMQ by the notes (docs/protocols/blazingmq.md, 6.3 and 6.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

#: Two's complement of the fewest bytes.
INTEGERS = {
    **{0: "00", 1: "01", 2: "02", 3: "03", 7: "07", 127: "7F", 128: "0080", 255: "00FF", 256: "0100"},
    **{-1: "FF", -2: "FE", -3: "FD", -4: "FC", -5: "FB", -6: "FA", -7: "F9", -8: "F8"},
    **{-128: "80", -129: "FF7F", 32768: "008000", 0x01020304: "01020304"},
    **{2**31 - 1: "7FFFFFFF", -(2**31): "80000000", 2**31: "0080000000", 2**32 - 1: "00FFFFFFFF"},
    **{2**63 - 1: "7FFFFFFFFFFFFFFF", -(2**63): "8000000000000000"},
    **{2**63: "008000000000000000", 2**64 - 1: "00FFFFFFFFFFFFFFFF"},
}
_SMALL = (127, 128, 255, 256, 32768)
_BELOW_ZERO = (-1, -128, -129)
RANGES: Mapping[str, Sequence[int]] = {
    "i32": (*_SMALL, *_BELOW_ZERO, 2**31 - 1, -(2**31)),
    "i64": (*_SMALL, *_BELOW_ZERO, 2**31, 2**63 - 1, -(2**63)),
    "u32": (*_SMALL, 2**31, 2**32 - 1),
    "u64": (*_SMALL, 2**31, 2**63, 2**64 - 1),
}
ENUMERATIONS: Mapping[str, Sequence[str]] = {
    "category": (
        *("E_SUCCESS", "E_UNKNOWN", "E_TIMEOUT", "E_NOT_CONNECTED", "E_CANCELED", "E_NOT_SUPPORTED"),
        *("E_REFUSED", "E_INVALID_ARGUMENT", "E_NOT_READY"),
    ),
    "clientType": ("E_UNKNOWN", "E_TCPCLIENT", "E_TCPBROKER", "E_TCPADMIN"),
    "language": ("E_UNKNOWN", "E_CPP", "E_JAVA"),
    "version": ("E_UNDEFINED", "E_VERSION_1"),
}

#: Sequences: each element has its name, its type and what it is where it is left out. Its number is its
#: place. ``?`` in front of a type: it may be absent; ``[]``: any number of them. Of a sequence that is
#: left out, all elements are, but the first where it says so.
SEQUENCES = """
Status                      category:category=0 code:i32=0 message:string=
SubQueueId                  subId:u32=0 appId:string=__default
HandleParameters            uri:string= qId:u32=0 subIdInfo:?SubQueueId flags:u64=0 readCount:i32=0
+                           writeCount:i32=0 adminCount:i32=0
OpenQueueRequest            handleParameters:HandleParameters
RoutingConfiguration        flags:u64=0
QueueStreamParameters       subIdInfo:?SubQueueId maxUnconfirmedMessages:i64=0 maxUnconfirmedBytes:i64=0
+                           consumerPriority:i32=-2147483648 consumerPriorityCount:i32=0
Expression                  version:version=0 text:string=
ConsumerInfo                maxUnconfirmedMessages:i64=0 maxUnconfirmedBytes:i64=0
+                           consumerPriority:i32=-2147483648 consumerPriorityCount:i32=0
Subscription                sId:u32=0 expression:Expression consumers:[]ConsumerInfo
StreamParameters            appId:string=__default subscriptions:[]Subscription
ConfigureQueueStreamRequest qId:u32=0 streamParameters:QueueStreamParameters
ConfigureStreamRequest      qId:u32=0 streamParameters:StreamParameters
GuidInfo                    clientId:string= nanoSecondsFromEpoch:i64=0
Identity                    protocolVersion:i32=0 sdkVersion:i32=999999 clientType:clientType=0
+                           processName:string= pid:i32=0 sessionId:i32=1 hostName:string=
+                           features:string= clusterName:string= clusterNodeId:i32=-1
+                           sdkLanguage:language=1 guidInfo:?GuidInfo userAgent:?string
"""
_IDENTITY = SEQUENCES[SEQUENCES.index("protocolVersion") :].strip().replace("\n+", " ")

#: Choices: number, name, and the elements.
CHOICES = f"""
negotiation 0  clientIdentity         {_IDENTITY}
negotiation 1  brokerResponse         result:Status protocolVersion:i32=1 brokerVersion:i32=999999
+                                     isDeprecatedSdk:bool=0 brokerIdentity:Identity=1
+                                     heartbeatIntervalMs:i32=3000 maxMissedHeartbeats:i32=10
login 0        authenticationRequest  mechanism:string= data:?bytes
login 1        authenticationResponse status:Status lifetimeMs:?u64
control 0      status                 category:category=-1 code:i32=0 message:string=
control 1      disconnect
control 2      disconnectResponse
control 7      adminCommand           command:string=
control 8      adminCommandResponse   text:string=
control 10     openQueue              handleParameters:HandleParameters
control 11     openQueueResponse      originalRequest:OpenQueueRequest
+                                     routingConfiguration:RoutingConfiguration
+                                     deduplicationTimeMs:i32=300000
control 12     closeQueue             handleParameters:HandleParameters isFinal:bool=0
control 13     closeQueueResponse
control 14     configureQueueStream   qId:u32=0 streamParameters:QueueStreamParameters
control 15     configureQueueStreamResponse request:ConfigureQueueStreamRequest
control 16     configureStream        qId:u32=0 streamParameters:StreamParameters
control 17     configureStreamResponse request:ConfigureStreamRequest
"""


def rows(table: str) -> list[str]:
    return table.replace("\n+", " ").strip().splitlines()


def elements(word: str) -> list[str]:
    """The words of a sequence."""
    return next(row.split()[1:] for row in rows(SEQUENCES) if row.split()[0] == word)


def python(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
