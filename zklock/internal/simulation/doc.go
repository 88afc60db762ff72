// Package simulation runs clients of the real library on a model ensemble, in virtual time, with
// random faults, and checks what must hold in all circumstances. It has tests only: TestSimulation
// lists what they check, and how to run them longer. TestSimulationOfTheWire does the same with
// zkdriver over ZooKeeper's protocol, and judges its answers, too. The same package has the other tests that
// look for bugs with many runs: each request of small cases is lost, sessions with thousands of
// locks end, and names come and go.
package simulation
