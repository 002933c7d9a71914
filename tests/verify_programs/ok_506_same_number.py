# expect: CUD506 reached
# gpus: 2
# Starts two ranks on one machine; their global and local numbers are the same.
import os
import subprocess
import sys

if __name__ == "__main__":
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank_506.py")
    world = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29522"}
    ranks = [
        subprocess.Popen([sys.executable, program], env={**world, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(2)
    ]
    sys.exit(max(rank.wait() for rank in ranks))
