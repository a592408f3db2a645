// The programs of a Kubernetes control plane without nodes, in one binary: one link step instead of four.
//
// The name it is called by picks the program, as with busybox (a symbolic link `kubectl`); otherwise the first argument does
// (`fencepost-apiserver etcd --data-dir ...`). From there on each is the ordinary program with its ordinary flags and output: the
// code below is what each one's own main does.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // time zones for CronJob validation, as in the programs' own mains

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins for kubectl, as in its own main
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// Each runs with os.Args as its own program would have them, and returns the exit status.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kubectl":                 runKubectl,
}

func main() {
	run, found := programs[filepath.Base(os.Args[0])]
	if !found && len(os.Args) > 1 {
		if run, found = programs[os.Args[1]]; found {
			os.Args = os.Args[1:]
		}
	}
	if !found {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
		fmt.Fprintf(os.Stderr, "usage: %s PROGRAM [flags], where PROGRAM is one of: %s\n", filepath.Base(os.Args[0]), names)
		os.Exit(2)
	}
	os.Exit(run())
}

func runEtcd() int {
	// Ends the process itself when it fails, and on a signal.
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	// The verbosity is wanted before cobra has parsed the flags: plugins and .kuberc are looked up while the command is made.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
