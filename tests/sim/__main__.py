import sys, time
from tests.sim.world import simulate
a,b=int(sys.argv[1]),int(sys.argv[2])
t=time.time()
from collections import Counter
met=Counter()
bad=0
for seed in range(a,b):
    o=simulate(seed)
    met.update(o.met)
    if o.broken:
        bad+=1
        print("seed",seed,o.broken[:3], o.steps, round(o.seconds))
    if len(sys.argv)>3: print("\n".join(o.lines)); print(o.broken)
print(bad,"of",b-a, round(time.time()-t,2),"s"); print(met)
