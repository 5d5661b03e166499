"""The rules of the world, which are those of ../lib/world.mjs: steps are for one tick of 50 ms."""

SIZE = 2000.0
RADIUS = 150.0
TICK_RATE = 20
PLAYER_STEP = 5.0
NPC_STEP = 2.0
NPCS = 2000
