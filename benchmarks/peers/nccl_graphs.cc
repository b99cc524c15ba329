// Graphs that NCCL's own search finds on a machine, and the times that follow. It is linked with src/graph/{topo,paths,
// search,connect,rings,trees,xml,tuning}.cc of a checkout, and stands in for the rest of NCCL. A line of stdin is a
// topology file, a number of boxes and one word per call, COLLECTIVE:BYTES; the answer is a graph after the other, then
// the times. nccl_search.py compiles it and says what the columns are.

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "core.h"
#if __has_include("device.h")
#include "device.h"
#else
#include "devcomm.h"
#endif
#include "comm.h"
#include "graph.h"
#include "topo.h"
#include "transport.h"
#include "xml.h"
#include "nvmlwrap.h"

// What the search asks of the rest of NCCL. Every GPU of a box reaches every other one over NVLink, PCIe or memory.
const char* ncclFuncStr[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
const char* ncclAlgoStr[NCCL_NUM_ALGORITHMS];
const char* ncclProtoStr[NCCL_NUM_PROTOCOLS];
thread_local int ncclDebugNoWarn;
ncclNvmlDevicePairInfo ncclNvmlDevicePairs[ncclNvmlMaxDevices][ncclNvmlMaxDevices];
int ncclNvmlDeviceCount;
ncclResult_t ncclNvmlEnsureInitialized() { return ncclSuccess; }
#if NCCL_VERSION_CODE >= 22900
int ncclDebugLevel = 0;
uint64_t ncclDebugMask = 0;
int64_t ncclLoadParam(char const*, int64_t value, int64_t, int64_t*, int8_t*) { return value; }
#else
void ncclLoadParam(char const*, int64_t value, int64_t, int64_t* cache) { *cache = value; }
#endif
static bool loud = getenv("LOUD") != nullptr;
static void say(const char* form, va_list words) {
  if (!loud) return;
  vfprintf(stderr, form, words);
  fputc('\n', stderr);
}
#if NCCL_VERSION_CODE >= 23000
void ncclDebugLogInternal(ncclDebugLogLevel, unsigned long, const char*, const char*, int, const char* form, ...) {
  va_list words;
  va_start(words, form);
  say(form, words);
  va_end(words);
}
#endif
void ncclDebugLog(ncclDebugLogLevel, unsigned long, const char*, int, const char* form, ...) {
  va_list words;
  va_start(words, form);
  say(form, words);
  va_end(words);
}
const char* ncclGetEnv(const char*) { return nullptr; }
uint64_t getHostHash() { return 0; }
ncclResult_t busIdToInt64(const char* text, int64_t* number) {
  std::string digits;
  for (; *text; text++) {
    if (isxdigit(*text)) digits += *text;
  }
  *number = strtoll(digits.c_str(), nullptr, 16);
  return ncclSuccess;
}
#if NCCL_VERSION_CODE >= 22300
static ncclResult_t reaches(int* answer, ncclComm*, ncclTopoGraph*, ncclPeerInfo*, ncclPeerInfo*) {
#else
static ncclResult_t reaches(int* answer, ncclTopoSystem*, ncclTopoGraph*, ncclPeerInfo*, ncclPeerInfo*) {
#endif
  *answer = 1;
  return ncclSuccess;
}
static ncclTransport always = {"all", reaches};
#if NCCL_VERSION_CODE >= 22800
ncclTransport* ncclTransports[NTRANSPORTS + 1] = {&always, &always, &always, &always, &always};
#else
ncclTransport* ncclTransports[NTRANSPORTS] = {&always, &always, &always, &always};
#endif
#if NCCL_VERSION_CODE < 22700
int ncclNetVersion(ncclComm*) { return 8; }
#endif
#if NCCL_VERSION_CODE >= 22200
int64_t ncclParamWorkArgsBytes() { return INT64_MAX; }
#endif
#if NCCL_VERSION_CODE >= 22900
void ncclOsCpuZero(ncclAffinity& set) { memset((void*)&set, 0, sizeof set); }
void ncclOsCpuSet(ncclAffinity&, int) {}
#endif

#define DO(call)                                        \
  do {                                                  \
    if ((call) != ncclSuccess) return #call;            \
  } while (0)

static void print(const ncclTopoSystem* system, const ncclTopoGraph& graph, int capability) {
  bool near = graph.typeInter <= (capability >= 90 ? PATH_PXN : PATH_PXB);
  printf("%d %.9g %.9g %d %d %d %d", graph.nChannels, graph.bwIntra, graph.bwInter, graph.typeIntra <= PATH_NVB, near,
         graph.sameChannels, graph.pattern == NCCL_TOPO_PATTERN_TREE);
  int gpus = system->nodes[GPU].count;
  for (int i = 0; i < gpus; i++) printf("%c%d", i ? ',' : ' ', graph.nChannels ? graph.intra[i] : -1);
  printf("|");
}

static void search(ncclTopoGraph& graph, int id, int pattern, int least, int most) {
  memset((void*)&graph, 0, sizeof graph);
  graph.id = id;
  graph.pattern = pattern;
  graph.minChannels = least;
  graph.maxChannels = most;
}

// Join the rings and trees of all boxes, which are alike: ranks of a later one are those of the first, plus an offset.
static const char* connect(ncclComm* comm, ncclTopoGraph** graphs, int gpus, int nodes) {
  std::vector<ncclTopoRanks> ranks(comm->nRanks);
  std::vector<ncclTopoRanks*> of(comm->nRanks);
  memset((void*)ranks.data(), 0, ranks.size() * sizeof(ncclTopoRanks));
  for (int rank = 0; rank < gpus; rank++) {
    comm->rank = rank;
    DO(ncclTopoPreset(comm, graphs, &ranks[rank]));
  }
  comm->rank = 0;
  DO(ncclTopoPreset(comm, graphs, &ranks[0]));
  for (int rank = 0; rank < comm->nRanks; rank++) {
    if (rank >= gpus) ranks[rank] = ranks[rank % gpus];
    of[rank] = &ranks[rank];
    int offset = rank / gpus * gpus;
    for (int c = 0; offset && c < MAXCHANNELS; c++) {
      for (int* one : {ranks[rank].ringRecv, ranks[rank].ringSend, ranks[rank].ringPrev, ranks[rank].ringNext,
                       ranks[rank].treeToParent, ranks[rank].treeToChild0, ranks[rank].treeToChild1}) {
        if (one[c] >= 0) one[c] += offset;
      }
      ranks[rank].nvlsHeads[c] += offset;
    }
  }
  std::vector<int> first, patterns, rings(comm->nRanks * MAXCHANNELS);
  for (int node = 0; node < nodes; node++) {
    first.push_back(ranks[node * gpus].ringRecv[0]);
    patterns.push_back(graphs[NCCL_ALGO_TREE]->pattern);
  }
  DO(ncclTopoPostset(comm, first.data(), patterns.data(), of.data(), rings.data(), graphs, nullptr));
  return nullptr;
}

static const char* answer(const std::string& file, int nodes, std::istringstream& calls) {
  ncclXml* xml;
  DO(xmlAlloc(&xml, NCCL_TOPO_XML_MAX_NODES));
  DO(ncclTopoGetXmlFromFile(file.c_str(), xml, 1));
  auto comm = (ncclComm*)calloc(1, sizeof(ncclComm));
  DO(ncclTopoGetSystemFromXml(xml, &comm->topo, 0));
  free(xml);
  ncclTopoSystem* system = comm->topo;
  int gpus = system->nodes[GPU].count;
  comm->nNodes = nodes;
  comm->nRanks = gpus * nodes;
  comm->peerInfo = (ncclPeerInfo*)calloc(comm->nRanks, sizeof(ncclPeerInfo));
  for (int rank = 0; rank < comm->nRanks; rank++) comm->peerInfo[rank].hostHash = rank / gpus;
  DO(ncclTopoComputePaths(system, comm));
  DO(ncclTopoTrimSystem(system, comm));
  DO(ncclTopoComputePaths(system, comm));
  DO(ncclTopoSearchInit(system));
  DO(ncclTopoComputeCommCPU(comm));
  if (system->nodes[GPU].count != gpus) return "some GPUs are not reached";
  static ncclTopoGraph ring, tree, chain, direct, nvls;
  search(ring, 0, NCCL_TOPO_PATTERN_RING, 1, MAXCHANNELS / 2);
  DO(ncclTopoCompute(system, &ring));
  search(tree, 1, NCCL_TOPO_PATTERN_BALANCED_TREE, ring.nChannels, ring.nChannels);
  DO(ncclTopoCompute(system, &tree));
  search(chain, 2, NCCL_TOPO_PATTERN_TREE, ring.nChannels, ring.nChannels);
  search(direct, 4, NCCL_TOPO_PATTERN_COLLNET_DIRECT, 1, MAXCHANNELS);
  search(nvls, 3, NCCL_TOPO_PATTERN_NVLS, 1, MAXCHANNELS);
  DO(ncclTopoGetCompCap(system, &comm->minCompCap, &comm->maxCompCap));
  // ncclNvlsInit, which asks the driver too
  comm->nvlsSupport = gpus > (NCCL_VERSION_CODE < 22900 ? 2 : 1) && system->nodes[NVS].count && comm->minCompCap >= 90;
  if (comm->nvlsSupport) DO(ncclTopoCompute(system, &nvls));
  print(system, ring, comm->minCompCap);
  print(system, tree, comm->minCompCap);
  print(system, nvls, comm->minCompCap);
  if (!nvls.nChannels) comm->nvlsSupport = 0;
  ncclTopoGraph* graphs[] = {&tree, &ring, &direct, &chain, &nvls, &nvls, &tree};
  comm->nChannels = tree.nChannels = ring.nChannels = std::min(tree.nChannels, ring.nChannels);
  comm->rankToNode = (int*)calloc(comm->nRanks, sizeof(int));
  comm->nodeRanks = (ncclNodeRanks*)calloc(nodes, sizeof(ncclNodeRanks));
  comm->rankToLocalRank = (int*)calloc(comm->nRanks, sizeof(int));
  for (int rank = 0; rank < comm->nRanks; rank++) {
    comm->rankToNode[rank] = rank / gpus;
    comm->rankToLocalRank[rank] = rank % gpus;
  }
  for (int node = 0; node < nodes; node++) {
    comm->nodeRanks[node].localRanks = gpus;
    comm->nodeRanks[node].localRankToRank = (int*)calloc(gpus, sizeof(int));
    for (int i = 0; i < gpus; i++) comm->nodeRanks[node].localRankToRank[i] = node * gpus + i;
  }
  comm->localRanks = comm->maxLocalRanks = gpus;
  comm->localRankToRank = comm->nodeRanks[0].localRankToRank;
  comm->config.minCTAs = 1;
  comm->config.maxCTAs = MAXCHANNELS;
#if NCCL_VERSION_CODE >= 22700
  comm->config.collnetEnable = 0;
  comm->maxTreePattern = tree.pattern;
#endif
#if NCCL_VERSION_CODE >= 22900
  comm->minLocalRanks = gpus;
#endif
  comm->sharedRes = (ncclSharedResources*)calloc(1, sizeof(ncclSharedResources));
  comm->sharedRes->owner = comm;
  if (const char* failed = connect(comm, graphs, gpus, nodes)) return failed;
  printf("%d|", comm->nChannels);
#if NCCL_VERSION_CODE >= 22900
  DO(ncclTopoInitTunerConstants(comm));
#endif
  DO(ncclTopoTuneModel(comm, comm->minCompCap, comm->maxCompCap, graphs));
  std::string word;
  while (calls >> word) {
    int call;
    size_t bytes;
    if (sscanf(word.c_str(), "%d:%zu", &call, &bytes) != 2) return "a call is COLLECTIVE:BYTES";
    for (int a = 0; a < NCCL_NUM_ALGORITHMS; a++) {
      for (int p = 0; p < NCCL_NUM_PROTOCOLS; p++) {
        float time = -1;
#if NCCL_VERSION_CODE >= 22700
        DO(ncclTopoGetAlgoTime(comm, call, a, p, bytes, 1, &time));
#else
        bool backup;
        DO(ncclTopoGetAlgoTime(comm, call, a, p, bytes, 1, &time, &backup));
        if (backup) time = -1;
#endif
        printf("%.9g ", time);
      }
    }
    printf("|");
  }
  return nullptr;
}

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string file;
    int nodes;
    words >> file >> nodes;
    fflush(stdout);
    if (pid_t child = fork()) {  // NCCL frees nothing of a search, and may loop or crash
      int status;
      waitpid(child, &status, 0);
      if (status) printf("failed: %s\n", WIFSIGNALED(status) ? "it ends by a signal" : "it ends");
      continue;
    }
    alarm(20);
    const char* failed = answer(file, nodes, words);
    printf(failed ? "failed: %s\n" : "\n", failed);
    return 0;
  }
}
