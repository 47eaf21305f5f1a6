"""An embedded Redis server, publish and subscribe only."""
