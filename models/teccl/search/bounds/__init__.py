"""Lower bounds on the makespan, in epochs, each with what proves it.

Every bound is a test: if it says no for K, no schedule has a makespan of K or less. In a schedule of makespan K, trace every chunk that a node g
lacks back from g to its source. Traces of different chunks use different starts, so all of them together are a flow of one unit for every chunk.
The tests differ in what they ask of this flow.
"""
